"""Who may ask: one token or a file of users; what these may spend, and that one does not touch another."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from studio_server import TOKEN, Studio, asking, desk_of, running
from typer.testing import CliRunner

from fairagent.cli import app
from fairagent.errors import DataError, FairAgentError, NotRegular, UsageError
from fairagent.guests.testing import LoopbackServer
from fairagent.llm.budget import Budget, limited_by
from fairagent.settings import BudgetSettings, load_settings
from fairagent.studio import serving
from fairagent.studio.app import assets_of, studio_pages
from fairagent.studio.server import SpendingBook, User, UserBudget, UserBudgetExceeded, hash_of, hosts_of, read_users

NOON = 1_795_867_200.0
"""2026-11-28, 12:00 UTC."""
QUERY = {"query": "lawyer"}


def user(name: str = "ada", **budget: Any) -> User:
    """Whose token is their name."""
    return User(name=name, sha256=hash_of(name), budget=UserBudget(**budget) if budget else None)


def users_file(folder: Path, *users: User) -> Path:
    path = folder / "users.jsonl"
    path.write_text("".join(one.model_dump_json(exclude_none=True) + "\n" for one in users), encoding="utf-8")
    path.chmod(0o600)
    return path


@pytest.fixture
def book(tmp_path: Path) -> Iterator[SpendingBook]:
    with closing(SpendingBook(tmp_path / "spent", lambda: NOON)) as book:
        yield book


ADA = {"name": "ada", "sha256": "0" * 64}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"name": "ada"}', "sha256"),
        (ADA | {"sha256": "0" * 63}, "sha256"),
        (ADA | {"name": "a b"}, "name"),
        (ADA | {"expires": "2027-01-31"}, "expires"),
        (ADA | {"budget": {"seconds": 5}}, "budget.seconds"),
        (ADA | {"budget": {}}, "limits nothing"),
        (ADA | {"budget": {"dollars": -1}}, "budget.dollars"),
        (ADA | {"sha256": hash_of("first")}, "again"),
        (ADA | {"name": "first"}, "again"),
        ("[]", ""),
        ("{", ""),
    ],
)
def test_every_wrong_line_is_named(tmp_path: Path, line: str | dict[str, Any], said: str) -> None:
    path = users_file(tmp_path, user("first"))
    path.write_text(path.read_text() + (line if isinstance(line, str) else json.dumps(line)) + "\n")
    with pytest.raises(DataError) as raised:
        read_users(path)
    assert re.search(rf"{path}:2: .*{said}", str(raised.value))


def test_a_file_of_users_that_others_have_rights_to(tmp_path: Path) -> None:
    """Nor one that is none."""
    path = users_file(tmp_path, user())
    for mode in (0o644, 0o640, 0o604, 0o620, 0o601, 0o660):
        path.chmod(mode)
        with pytest.raises(UsageError, match=f"chmod 600 {path}"):
            read_users(path)
    path.chmod(0o600)
    if os.geteuid() == 0:  # who alone can give a file away
        os.chown(path, 12345, 12345)
        with pytest.raises(FairAgentError, match=r"belongs to another user \(12345\)"):
            read_users(path)
        os.chown(path, 0, 0)
    for said, data in (("no users", b""), ("larger than", b" " * 1_000_001)):
        path.write_bytes(data)
        with pytest.raises(FairAgentError, match=said):
            read_users(path)
    path.rename(tmp_path / "real.jsonl")
    path.symlink_to(tmp_path / "real.jsonl")
    with pytest.raises(FairAgentError, match="is a link"):
        read_users(path)


def test_calls_tokens_and_dollars_are_limited_and_settled(book: SpendingBook) -> None:
    who = user(tokens=1000, dollars=0.5)
    request = book.reserve(who, 600, 0.2)
    assert book.spent(who) == (1, 600, 0.2)
    # Whatever the first may come to, both together keep to the limit.
    with pytest.raises(UserBudgetExceeded):
        book.reserve(who, 401, 0.0)
    request.settle(500, 0.1)
    assert book.spent(who) == (1, 500, pytest.approx(0.1))
    with pytest.raises(UserBudgetExceeded, match=r"ada's budget of 1,000 tokens for 2026-11-28 \(UTC\) is used up"):
        book.reserve(who, 501, 0.0)
    for dollars, said in ((0.41, "dollars"), (None, "price of this model is not known")):
        with pytest.raises(UserBudgetExceeded, match=said):
            book.reserve(who, 1, dollars)
    book.reserve(who, 500, 0.1).give_back()
    assert book.spent(who) == (1, 500, pytest.approx(0.1))
    # Another has spent nothing; and a limit that is lowered holds at once.
    book.reserve(user("bob", tokens=1000), 1000, 0.0)
    with pytest.raises(UserBudgetExceeded, match="budget of 1 calls"):
        book.reserve(user(calls=1), 1, 0.0)


def test_a_day_ends_and_a_total_does_not(tmp_path: Path) -> None:
    now = [NOON]
    with closing(SpendingBook(tmp_path / "spent", lambda: now[0])) as book:
        daily, total = user("daily", calls=1), user("total", calls=1, per="total")
        for one in (daily, total):
            book.reserve(one, 10, 0.0).settle(5, 0.0)
            with pytest.raises(UserBudgetExceeded) as raised:
                book.reserve(one, 10, 0.0)
            assert raised.value.retry_after == (12 * 3600 + 1 if one is daily else None)
        now[0] += 12 * 3600
        assert book.reserve(daily, 10, 0.0)
        # Nor does a clock that is put back give the day's budget twice.
        for before in (0, 12 * 3600):
            now[0] -= before
            for one in (daily, total):
                with pytest.raises(UserBudgetExceeded):
                    book.reserve(one, 10, 0.0)


SPENDING = """
import os, signal, sys
from pathlib import Path
from fairagent.studio.server import SpendingBook, UserBudgetExceeded
from fairagent.studio.server import User, UserBudget
book, made = SpendingBook(Path(sys.argv[1]), lambda: 1_795_867_200.0), 0
who = User(name="ada", sha256="0" * 64, budget=UserBudget(calls=30))
for _ in range(25):
    try:
        book.reserve(who, 10, 0.0).settle(5, 0.0)
        made += 1
    except UserBudgetExceeded:
        pass
print(made, flush=True)
if sys.argv[2:]:
    book.reserve(User(name="bob", sha256="1" * 64), 200, 0.0)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_processes_share_a_budget_and_what_a_killed_one_had_reserved_counts(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SPENDING, str(tmp_path / "spent")]
    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(lambda more: subprocess.run([*command, *more], stdout=-1, timeout=60), ([], ["and die"])))
    assert sum(int(one.stdout) for one in ended) == 30
    assert ended[1].returncode == -signal.SIGKILL
    assert (tmp_path / "spent").stat().st_mode & 0o777 == 0o600
    with closing(SpendingBook(tmp_path / "spent", lambda: NOON)) as book:
        assert book.spent(user()) == (30, 150, 0.0)
        assert book.spent(user("bob")) == (1, 200, 0.0)


def test_what_is_no_database_is_an_error_and_stays(tmp_path: Path) -> None:
    (tmp_path / "spent").write_text("hello " * 100)
    with pytest.raises(FairAgentError, match="cannot be stored"):
        SpendingBook(tmp_path / "spent")
    assert (tmp_path / "spent").read_text() == "hello " * 100
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotRegular):
        SpendingBook(tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()


def test_a_budget_that_refuses_gives_the_users_share_back(book: SpendingBook) -> None:
    who, budget = user(calls=5), Budget(BudgetSettings(calls=1))
    with limited_by(partial(book.reserve, who)):
        with budget.reserve(1, 0.0) as reserved:
            reserved.settle(1, 0.0)
        with pytest.raises(FairAgentError, match="budget of 1 calls"):
            budget.reserve(1, 0.0)
    assert book.spent(who) == (1, 1, 0.0)
    with limited_by(partial(book.reserve, user("bob", calls=0))), pytest.raises(UserBudgetExceeded):
        Budget().reserve(1, 0.0)


def test_one_users_exhaustion_does_not_touch_another(folder: Path, no_variables: None, tmp_path: Path) -> None:
    """Each answer asks the model once; ada has one call a day, bob three."""
    people = user("ada", calls=1), user("bob", calls=3)
    admission = read_users(users_file(tmp_path, *people))
    with (
        LoopbackServer(["A lawyer pleaded [1]."]) as model,
        closing(SpendingBook(tmp_path / "spent")) as book,
        running(asking(folder, model.url, generate={"kind": "llm"}), admission=admission, book=book) as studio,
    ):

        def ask(token: str, call: str = "answer", **headers: str) -> httpx.Response:
            with anybody(studio, authorization=f"Bearer {token}", **headers) as client:
                return client.post(f"/api/{call}", json=QUERY)

        assert ask("ada").status_code == 200
        refused = ask("ada")
        assert refused.status_code == 429
        assert re.match("ada's budget of 1 calls for .* there is more at ", refused.json()["error"])
        assert 0 < int(refused.headers["retry-after"]) <= 86_401
        # What asks no model goes on, and so does the other; a stream is limited as well.
        assert ask("ada", "search").status_code == 200
        assert [ask("bob").status_code for _ in range(2)] == [200, 200]
        assert '"kind": "UserBudgetExceeded"' in ask("ada", accept="text/event-stream").text
        assert len(model.requests) == 3
        assert ask("x" * 43).status_code == 401
        assert [book.spent(one)[0] for one in people] == [1, 2]


def test_a_token_of_ones_own_is_used_and_not_printed_and_is_no_setting(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRAGENT_TOKEN", "one-of-my-own-0123")
    assert load_settings()
    doors: list[Any] = []
    monkeypatch.setattr(serving, "studio_app", lambda desk, lanes, door, *_: doors.append(door))
    monkeypatch.setattr(serving.StudioServer, "run", lambda *_, **__: None)
    monkeypatch.setattr(serving.StudioServer, "__init__", lambda *_, **__: None)
    monkeypatch.chdir(folder)
    told = CliRunner().invoke(app, ["serve", "--port", "0", "-c", "collection.yaml", "--index", "index"])
    assert told.exit_code == 0, told.output
    assert doors[0].admission == {hash_of("one-of-my-own-0123"): None}
    assert "token" not in told.output
    monkeypatch.setenv("FAIRAGENT_TOKEN", "short")
    assert CliRunner().invoke(app, ["serve", "--port", "0"]).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0", "--no-token"], "--no-token is for this machine alone"),
        (["--allow-host", "search.example.org", "--no-token"], "--no-token is for this machine alone"),
        (["--host", "search.example.org"], "expected an address"),
        (["--host", "192.0.2.1"], "is no address of this machine"),
        (["--allow-host", "http://a b/"], "expected a name"),
        (["--host", "::", "--no-token"], "--no-token is for this machine alone"),
        (["--tokens", "users.jsonl", "--no-token"], "leave one of them out"),
        (["--tokens", "nothing-there.jsonl"], "cannot be read"),
    ],
)
def test_what_is_not_safe_is_refused_before_the_collection_is_opened(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["serve", "--port", "0", "--collection", "nowhere.yaml", *arguments])
    assert result.exit_code in (2, 3)
    assert said in " ".join(result.stderr.split())


def test_a_name_that_is_allowed_is_called_and_no_other(folder: Path) -> None:
    hosts = hosts_of("0.0.0.0", 8765, ["Search.example.org", "other.example:444"])
    with running(desk_of(folder, cache=""), hosts=hosts) as studio, studio.client() as client:
        for host, origin, status in (
            ("search.example.org", "https://search.example.org", 200),
            ("SEARCH.example.org:8765", "http://search.example.org:8765", 200),
            ("other.example:444", "", 200),
            ("other.example", "", 403),
            ("evil.example", "", 403),
            ("0.0.0.0:8765", "", 403),
            ("search.example.org.evil.example", "", 403),
            ("search.example.org", "https://other.example:444", 403),
            ("search.example.org", "https://search.example.org:8765", 403),
            ("search.example.org", "null", 403),
        ):
            headers = {"host": host} | ({"origin": origin} if origin else {})
            assert client.get("/api/about", headers=headers).status_code == status, (host, origin)
    assert "[::1]:80" in hosts_of("::1", 80)
    assert os.sep not in "".join(hosts_of("::", 80))


def anybody(studio: Studio, **headers: str) -> httpx.Client:
    return httpx.Client(base_url=studio.url, headers=headers, trust_env=False, timeout=60)


@pytest.mark.parametrize("path", ["/api/about", "/api/document?id=d00", "/api/runs", "/api/prompts", "/api/nothing"])
def test_nothing_is_told_without_the_token(studio: Studio, path: str) -> None:
    wrong = ({"cookie": f"token={TOKEN}"}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {TOKEN}"})
    with anybody(studio) as client:
        assert client.get(path, params={"token": TOKEN}).status_code == 401
        assert [client.get(path, headers=one).status_code for one in ({}, *wrong)] == [401] * 4


def test_pages_are_shells_that_anybody_gets_and_that_tell_nothing(studio: Studio) -> None:
    """Neither the collection, nor its topics and groups, nor files."""
    with anybody(studio) as client:
        for path in ("/", "/docs", "/prompts", "/runs", "/runs/one", "/frame"):
            reply = client.get(path)
            assert (reply.status_code, client.post(path).status_code) == (200, 401)
            assert "set-cookie" not in reply.headers
            secrets = ("lawyer", "female", str(studio.desk.settings.index), TOKEN)
            assert [told for told in secrets if told in reply.text] == []
        health = client.get("/health").json()
        assert health == {"ok": True, "version": health["version"], "collection": "open"}
        assert client.get("/health", headers={"host": "elsewhere.example"}).status_code == 403


def test_other_names_and_pages_are_refused_also_without_a_token(folder: Path) -> None:
    with running(desk_of(folder, cache=""), token="") as studio:
        for headers in (
            {"host": "elsewhere.example"},
            {"origin": "http://elsewhere.example"},
            {"origin": "https://127.0.0.1"},
            {"sec-fetch-site": "cross-site"},
        ):
            with anybody(studio, **headers) as client:
                assert client.post("/api/search", json=QUERY).status_code == 403
                assert client.get("/").status_code == 403
        # Its own pages and programs are let in.
        for headers in ({"origin": studio.url, "sec-fetch-site": "same-origin"}, {}):
            with anybody(studio, **headers) as client:
                assert client.post("/api/search", json=QUERY).status_code == 200
        # A form of another page could send this without asking first.
        with anybody(studio, **{"content-type": "text/plain"}) as client:
            assert client.post("/api/search", content=json.dumps(QUERY)).status_code == 400


def test_every_reply_says_that_nothing_may_come_from_elsewhere(studio: Studio) -> None:
    with studio.client() as client, anybody(studio) as other:
        replies = [*(client.get(path) for path in ("/", "/runs", "/nothing", "/api/about")), other.get("/")]
    for reply in replies:
        policy = dict(part.split(" ", 1) for part in reply.headers["content-security-policy"].split("; "))
        assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"


def test_the_files_of_the_page_are_these_and_no_others(studio: Studio) -> None:
    with studio.client() as client:
        for name in assets_of(studio_pages()):
            assert client.get(f"/assets/{name}").status_code == 200
        for name in ("search.html", "..%2fguard.py", "..%2f..%2f..%2fpyproject.toml", "%2fetc%2fpasswd", "."):
            assert client.get(f"/assets/{name}").status_code == 404
