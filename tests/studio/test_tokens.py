"""Users who last: their file, what they may spend, and that one does not touch another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import httpx
import pytest
from browser import waited
from studio_server import desk_of, running
from typer.testing import CliRunner

from fairagent.cli import app
from fairagent.errors import DataError, FairAgentError, NotRegular, UsageError
from fairagent.guests.testing import LoopbackServer
from fairagent.llm.budget import Budget, limited_by
from fairagent.settings import BudgetSettings
from fairagent.studio.server import hosts_of
from fairagent.studio.serving import book_of
from fairagent.studio.spending import IN_THE_AIR, SpendingBook, Spent, UserBudgetExceeded
from fairagent.studio.tokens import (
    TokenRefused,
    User,
    UserBudget,
    UserFile,
    add_user,
    hash_of,
    read_users,
    remove_user,
)

NOON = 1_795_867_200.0
"""2026-11-28, 12:00 UTC."""
QUERY = {"query": "lawyer"}


class Clock:
    """Time that stands until it is moved."""

    def __init__(self, time: float = NOON) -> None:
        self.time = time

    def __call__(self) -> float:
        return self.time


def user(name: str = "ada", **budget: Any) -> User:
    return User(name=name, sha256=hash_of(name), budget=UserBudget(**budget) if budget else None)


@pytest.fixture
def book(tmp_path: Path) -> Iterator[SpendingBook]:
    with closing(SpendingBook(tmp_path / "spent", Clock())) as book:
        yield book


def test_a_token_is_shown_once_and_the_file_has_its_hash(tmp_path: Path) -> None:
    path = tmp_path / "users.jsonl"
    run = CliRunner()
    added = run.invoke(app, ["token", "add", "ada", "--calls", "5", "--expires", "2027-01-31", "--file", str(path)])
    assert added.exit_code == 0
    token = added.stdout.strip()
    assert len(token) == 43
    assert path.stat().st_mode & 0o777 == 0o600
    assert token not in path.read_text()
    (line,) = path.read_text().splitlines()
    assert json.loads(line) == {
        "name": "ada",
        "sha256": hash_of(token),
        "budget": {"per": "day", "calls": 5},
        "expires": "2027-01-31",
    }
    assert run.invoke(app, ["token", "add", "ada", "--file", str(path)]).exit_code == 2
    listed = run.invoke(app, ["token", "list", "--file", str(path)])
    assert listed.stdout == "ada: 5 calls a day, until 2027-01-31; spent 0 calls, 0 tokens, $0.0000\n"
    told = json.loads(run.invoke(app, ["token", "list", "--json", "--file", str(path)]).stdout)
    assert told["users"][0]["spent"] == {"calls": 0, "tokens": 0, "dollars": 0.0}
    assert "sha256" not in told["users"][0]
    assert run.invoke(app, ["token", "remove", "ada", "--file", str(path)]).exit_code == 0
    assert run.invoke(app, ["token", "remove", "ada", "--file", str(path)]).exit_code == 2
    assert path.read_text() == ""


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "x" * 101, "ada;", "\x1b[31m"])
def test_a_name_is_one_word(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be a user's name"):
        add_user(tmp_path / "users.jsonl", name)
    assert not (tmp_path / "users.jsonl").exists()


def test_commands_at_once_lose_nobody(tmp_path: Path) -> None:
    path = tmp_path / "users.jsonl"
    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(lambda n: add_user(path, f"user{n}"), range(24)))
    assert sorted(one.name for one in read_users(path)) == sorted(f"user{n}" for n in range(24))
    assert {one.sha256 for one in read_users(path)} == set(map(hash_of, tokens))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"name": "ada"}', "sha256"),
        ('{"name": "ada", "sha256": "short"}', "sha256"),
        (json.dumps({"name": "ada", "sha256": "0" * 64, "admin": True}), "admin"),
        (json.dumps({"name": "ada", "sha256": "0" * 64, "budget": {"seconds": 5}}), "budget.seconds"),
        (json.dumps({"name": "ada", "sha256": "0" * 64, "budget": {}}), "limits nothing"),
        (json.dumps({"name": "ada", "sha256": "0" * 64, "budget": {"dollars": -1}}), "budget.dollars"),
        (json.dumps({"name": "ada", "sha256": "0" * 64, "expires": "soon"}), "expires"),
        (json.dumps({"name": "bob", "sha256": "1" * 64}), "the token of line 1 again"),
        (json.dumps({"name": "first", "sha256": "2" * 64}), "the user of line 1 again"),
        ("[]", "line"),
        ("{", "line"),
    ],
)
def test_every_wrong_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "users.jsonl"
    path.write_text(json.dumps({"name": "first", "sha256": "1" * 64}) + "\n" + line + "\n")
    path.chmod(0o600)
    with pytest.raises(DataError) as raised:
        read_users(path)
    assert f"{path}:2: " in str(raised.value)
    assert said == "line" or said in str(raised.value)


def test_the_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path, clock = tmp_path / "users.jsonl", Clock()
    first = add_user(path, "ada")
    users = UserFile(path, clock, Clock())
    assert users.user(first).name == "ada"
    second = add_user(path, "bob")
    remove_user(path, "ada")
    clock.time += 0.6
    assert users.user(second).name == "bob"
    with pytest.raises(TokenRefused) as raised:
        users.user(first)
    assert raised.value.status == 401
    # One that others may read lets in nobody, until it is mended.
    path.chmod(0o640)
    clock.time += 0.6
    with pytest.raises(TokenRefused) as raised:
        users.user(second)
    assert raised.value.status == 503
    path.chmod(0o600)
    clock.time += 0.6
    assert users.user(second).name == "bob"
    path.unlink()
    clock.time += 0.6
    with pytest.raises(TokenRefused):
        users.user(second)


def test_a_token_holds_on_its_last_day_and_not_on_the_next(tmp_path: Path) -> None:
    path, now = tmp_path / "users.jsonl", Clock()
    token = add_user(path, "ada", expires=date(2026, 11, 28))
    users = UserFile(path, Clock(), now)
    assert users.user(token).name == "ada"
    now.time += 12 * 3600
    with pytest.raises(TokenRefused, match="held until 2026-11-28"):
        users.user(token)


def test_a_file_without_users_serves_nobody(tmp_path: Path) -> None:
    path = tmp_path / "users.jsonl"
    add_user(path, "ada")
    remove_user(path, "ada")
    with pytest.raises(UsageError, match="token add"):
        UserFile(path)


def test_calls_tokens_and_dollars_are_limited_and_settled(book: SpendingBook) -> None:
    who = user(tokens=1000, dollars=0.5)
    number = book.reserve(who, 600, 0.2)
    assert book.spent(who).tokens == 600
    book.settle(number, Spent(1, 500, 0.1))
    assert (book.spent(who).calls, book.spent(who).tokens, book.spent(who).dollars) == (1, 500, 0.1)
    with pytest.raises(UserBudgetExceeded, match=r"ada's budget of 1,000 tokens for 2026-11-28 \(UTC\) is used up"):
        book.reserve(who, 501, 0.0)
    with pytest.raises(UserBudgetExceeded, match="dollars"):
        book.reserve(who, 1, 0.41)
    with pytest.raises(UserBudgetExceeded, match="price of this model is not known"):
        book.reserve(who, 1, None)
    given_back = book.reserve(who, 500, 0.1)
    book.settle(given_back, Spent())
    assert book.spent(who).tokens == 500
    # Another has spent nothing.
    assert book.spent(user("bob", tokens=1000)).calls == 0
    book.reserve(user("bob", tokens=1000), 1000, 0.0)


def test_a_day_ends_and_a_total_does_not(tmp_path: Path) -> None:
    clock = Clock()
    with closing(SpendingBook(tmp_path / "spent", clock)) as book:
        daily, total = user("daily", calls=1), user("total", calls=1, per="total")
        for one in (daily, total):
            book.limit(one).reserve(10, 0.0).settle(5, 0.0)
            with pytest.raises(UserBudgetExceeded) as raised:
                book.reserve(one, 10, 0.0)
            assert raised.value.retry_after == (12 * 3600 + 1 if one is daily else None)
        clock.time += 12 * 3600
        assert book.reserve(daily, 10, 0.0)
        with pytest.raises(UserBudgetExceeded, match="ask whoever runs this server"):
            book.reserve(total, 10, 0.0)


def test_what_was_spent_survives_and_what_a_killed_process_reserved_counts(tmp_path: Path) -> None:
    clock, who = Clock(), user(tokens=1000)
    with closing(SpendingBook(tmp_path / "spent", clock)) as book:
        book.limit(who).reserve(400, 0.0).settle(300, 0.0)
        book.reserve(who, 600, 0.0)
    assert (tmp_path / "spent").stat().st_mode & 0o777 == 0o600
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        clock.time += IN_THE_AIR / 3

    with closing(SpendingBook(tmp_path / "spent", clock, pause)) as book:
        assert book.spent(who).tokens == 900
        # 200 would fit if the 600 took nothing: it is waited for, and counted when it can come to nothing more.
        with pytest.raises(UserBudgetExceeded, match="900 are used"):
            book.reserve(who, 200, 0.0)
        assert len(waited) == 3


def test_a_request_waits_for_the_room_that_another_gives_back(tmp_path: Path) -> None:
    who = user(tokens=1000)
    with closing(SpendingBook(tmp_path / "spent", Clock())) as book:
        first = book.reserve(who, 900, 0.0)
        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(book.reserve, who, 800, 0.0)
            book.settle(first, Spent(1, 100, 0.0))
            assert second.result(10) > first


SPENDING = """
import sys
from pathlib import Path
from fairagent.studio.spending import SpendingBook, UserBudgetExceeded
from fairagent.studio.tokens import User, UserBudget
book, made = SpendingBook(Path(sys.argv[1]), lambda: 1_795_867_200.0), 0
for _ in range(25):
    try:
        book.limit(User(name="ada", sha256="0" * 64, budget=UserBudget(calls=30))).reserve(10, 0.0).settle(10, 0.0)
        made += 1
    except UserBudgetExceeded:
        pass
print(made)
"""


def test_two_processes_share_one_budget(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SPENDING, str(tmp_path / "spent")]
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda _: int(subprocess.check_output(command, timeout=60)), range(2)))
    assert sum(made) == 30


def test_what_is_no_database_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "spent").write_text("hello " * 100)
    with pytest.raises(FairAgentError, match="cannot be kept"):
        SpendingBook(tmp_path / "spent")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotRegular):
        SpendingBook(tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()


def test_a_budget_that_refuses_gives_the_users_share_back(book: SpendingBook) -> None:
    who, budget = user(calls=5), Budget(BudgetSettings(calls=1))
    with limited_by(book.limit(who)):
        with budget.reserve(1, 0.0) as reserved:
            reserved.settle(1, 0.0)
        with pytest.raises(FairAgentError, match="budget of 1 calls"):
            budget.reserve(1, 0.0)
    assert book.spent(who).calls == 1
    with limited_by(book.limit(user("bob", calls=0))), pytest.raises(UserBudgetExceeded):
        Budget().reserve(1, 0.0)


def test_one_users_exhaustion_does_not_touch_another(
    folder: Path, no_variables: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each answer asks the model once; ada has one call a day, bob three."""
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
    path = tmp_path / "users.jsonl"
    ada, bob = add_user(path, "ada", UserBudget(calls=1)), add_user(path, "bob", UserBudget(calls=3))
    with LoopbackServer(["A lawyer pleaded [1]."]) as model, closing(book_of(path)) as book:
        named = {"name": "tiny", "base_url": model.url, "attempts": 1}
        desk = desk_of(folder, cache="", model=named, profile="offline", generate={"kind": "llm"})
        with running(desk, admission=UserFile(path), book=book) as studio:

            def ask(token: str, call: str = "answer", **headers: str) -> httpx.Response:
                with httpx.Client(base_url=studio.url, trust_env=False, timeout=60) as client:
                    sent = {"authorization": f"Bearer {token}", **headers}
                    return client.post(f"/api/{call}", json=QUERY, headers=sent)

            assert [ask(ada).status_code, ask(ada).status_code] == [200, 429]
            refused = ask(ada)
            assert "ada's budget of 1 calls for " in refused.json()["error"]
            assert "there is more at " in refused.json()["error"]
            assert 0 < int(refused.headers["retry-after"]) <= 86_401
            # What asks no model goes on, and so does the other; a stream is limited as well.
            assert ask(ada, "search").status_code == 200
            assert [ask(bob).status_code for _ in range(2)] == [200, 200]
            stream = ask(ada, accept="text/event-stream").text
            assert '"kind": "UserBudgetExceeded"' in stream
            assert len(model.requests) == 3
            assert ask("x" * 43).status_code == 401
    with closing(book_of(path)) as again:
        spent = {one.name: again.spent(one).calls for one in read_users(path)}
    assert spent == {"ada": 1, "bob": 2}


def test_a_user_who_is_removed_is_refused_within_a_second(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "users.jsonl"
    ada, _ = add_user(path, "ada"), add_user(path, "bob")
    with running(desk_of(folder, cache=""), token=ada, admission=UserFile(path)) as studio, studio.client() as client:
        assert client.get("/api/about").status_code == 200
        remove_user(path, "ada")
        waited(lambda: client.get("/api/about").status_code == 401)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0", "--no-token"], "--no-token is for this machine alone"),
        (["--allow-host", "search.example.org", "--no-token"], "--no-token is for this machine alone"),
        (["--host", "search.example.org"], "expected an address"),
        (["--host", "192.0.2.1"], "is no address of this machine"),
        (["--allow-host", "http://a b/"], "expected a name"),
        (["--tokens", "users.jsonl", "--no-token"], "leave one of them out"),
        (["--tokens", "nothing-there.jsonl"], "token add NAME"),
    ],
)
def test_what_is_not_safe_is_refused_before_the_collection_is_opened(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["serve", "--port", "0", "--collection", "nowhere.yaml", *arguments])
    assert result.exit_code in (2, 3)
    assert said in " ".join(result.stderr.split())


def test_a_name_that_is_allowed_is_called_and_no_other(folder: Path) -> None:
    hosts = hosts_of("0.0.0.0", 8765, ["Search.example.org", "other.example:444"])
    with running(desk_of(folder, cache=""), hosts=hosts) as studio, studio.client() as client:

        def asked(host: str, origin: str = "") -> int:
            return client.get("/api/about", headers={"host": host} | ({"origin": origin} if origin else {})).status_code

        assert asked("search.example.org", "https://search.example.org") == 200
        assert asked("SEARCH.example.org:8765", "http://search.example.org:8765") == 200
        assert asked("other.example:444") == 200
        for host, origin in (
            ("other.example", ""),
            ("evil.example", ""),
            ("0.0.0.0:8765", ""),
            ("search.example.org.evil.example", ""),
            ("search.example.org", "https://other.example:444"),
            ("search.example.org", "https://search.example.org:8765"),
            ("search.example.org", "null"),
        ):
            assert asked(host, origin) == 403


def test_the_address_itself_is_a_name(tmp_path: Path) -> None:
    assert "10.1.2.3:80" in hosts_of("10.1.2.3", 80)
    assert "[::1]:80" in hosts_of("::1", 80)
    assert os.sep not in "".join(hosts_of("::", 80))
