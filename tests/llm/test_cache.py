"""The cache of replies: nothing is paid for twice, nothing in it is ever run, and no damage to it loses anything."""

from __future__ import annotations

import os
import pickle
import sqlite3
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import diskcache
import pytest

from fairagent.errors import ModelError, ReplyInvalid, ReplyRefused, SettingsError
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ask
from fairagent.llm.budget import Ledger
from fairagent.llm.cache import ReplyCache
from fairagent.llm.models import CachingModel
from fairagent.llm.request import ModelReply, ModelRequest, Reply
from fairagent.types import Usage

REPLY = ModelReply('{"colors": ["red"]}', 11, 7, "tiny-2026", seconds=2.0, calls=2, cost=0.25, notes=("1 retry",))
ASKED = ModelRequest((("user", "Colors, please."),))


class Colors(Reply):
    colors: list[str]


class Scripted(ScriptedModel):
    """A scripted model with an identity and a price of $1 a token."""

    def identity(self, request: ModelRequest) -> dict[str, object]:
        return {"model": "scripted", "messages": request.messages, "seed": request.seed}

    def hide(self, text: str) -> str:
        return text

    def cost(self, input_tokens: int, output_tokens: int, cached_tokens: int) -> float | None:
        return float(input_tokens + output_tokens - cached_tokens)


def rows(cache: ReplyCache) -> sqlite3.Connection:
    return sqlite3.connect(cache.folder / "cache.db")


def tamper(cache: ReplyCache, **columns: object) -> None:
    """Overwrite these columns of every reply's row."""
    with rows(cache) as database:
        changes = ", ".join(f"{name} = ?" for name in columns)
        database.execute(f"UPDATE Cache SET {changes} WHERE key != 'format'", tuple(columns.values()))
    database.close()


def test_a_reply_comes_back_as_it_went_in_but_marked(cache: ReplyCache) -> None:
    assert cache.get("k") is None
    cache.put("k", REPLY)
    cache.close()
    again = ReplyCache(cache.folder)
    assert again.get("k") == replace(REPLY, cached=True)
    again.close()
    # It costs nothing, and says what it saved.
    usage = replace(REPLY, cached=True, seconds=0.001).usage
    assert (usage.calls, usage.input_tokens, usage.output_tokens, usage.cost) == (0, 0, 0, 0.0)
    assert usage.saved == Usage(2, 11, 7, 0.25, 0.0, False, ("1 retry",))
    assert (usage.whole.calls, usage.whole.input_tokens, usage.whole.cost) == (2, 11, 0.25)


@pytest.mark.parametrize("text", ["Größe 🎨 \u2028", "\ud800 alone", "\x00", "x" * 1_000_000, "{}"])
def test_any_text_survives(cache: ReplyCache, text: str) -> None:
    cache.put("k", replace(REPLY, text=text))
    kept = cache.get("k")
    assert kept is None or kept.text == text
    assert (kept is None) == ("\ud800" in text)


def test_only_the_owner_can_read_it(cache: ReplyCache) -> None:
    cache.folder.chmod(0o755)
    ReplyCache(cache.folder).close()
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in cache.folder.glob("cache.db*")} == {0o600}


class Trap:
    """Unpickled, it leaves a canary."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.canary),)


@pytest.fixture
def canary(tmp_path: Path) -> Iterator[Path]:
    """Where a trap leaves its mark; it works in diskcache's own Disk, and must not in ours."""
    canary = tmp_path / "canary"
    diskcache.Disk(str(tmp_path)).fetch(4, None, pickle.dumps(Trap(canary)), False)
    assert canary.exists()
    canary.rmdir()
    yield canary
    assert not canary.exists()


def test_a_pickle_in_a_row_or_a_file_is_never_opened_and_no_file_is_removed(cache: ReplyCache, canary: Path) -> None:
    pickled = pickle.dumps(Trap(canary))
    trap = cache.folder.parent / "trap.val"
    trap.write_bytes(pickled)
    in_row = [{"mode": mode, "value": pickled} for mode in (1, 2, 3, 4, 5, None, "4")]
    in_file = [{"mode": mode, "filename": "../trap.val", "value": None} for mode in (2, 3, 4)]
    for columns in (*in_row, *in_file):
        cache.put("k", REPLY)
        tamper(cache, **columns)
        assert cache.get("k") is None
        assert cache._rows.get("k", read=True) in (None, "")
        assert cache.stats().replies == 0
    # The row is paid for again, and whole.
    cache.put("k", REPLY)
    assert cache.get("k") == replace(REPLY, cached=True)
    tamper(cache, filename="../trap.val")
    cache.clear()
    assert trap.exists()


def test_a_pickle_as_a_key_is_never_opened_and_none_is_written(cache: ReplyCache, canary: Path) -> None:
    cache.put("k", REPLY)
    tamper(cache, key=pickle.dumps(Trap(canary)), raw=0)
    assert cache.get("k") is None
    for keys in (cache._rows.iterkeys(), iter(cache._rows), reversed(cache._rows)):
        assert set(keys) == {"format", ""}
    assert cache.stats().replies == cache.clear() == 0
    for key, value in ((b"k", "text"), ("k", Trap(canary))):
        with pytest.raises(TypeError, match="expected a text"):
            cache._rows.set(key, value)


@pytest.mark.parametrize("damage", ["half", "start", "older", "other format", "odd settings"])
def test_a_damaged_database_is_moved_aside(
    cache: ReplyCache, damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(50):
        cache.put(f"{number}", REPLY)
    cache.close()
    database = cache.folder / "cache.db"
    whole = database.read_bytes()
    spoiled = {"half": whole[: len(whole) // 2], "start": b"\0" * 2000 + whole[2000:], "older": b""}
    statements = {
        "older": "CREATE TABLE Cache (key TEXT, value TEXT)",
        "other format": "UPDATE Cache SET value = '0' WHERE key = 'format'",
        "odd settings": "INSERT INTO Settings VALUES ('disk_of_another_kind', 1)",
    }
    database.write_bytes(spoiled.get(damage, whole))
    if damage in statements:
        with rows(cache) as old:
            old.execute(statements[damage])
        old.close()
    again = ReplyCache(cache.folder)
    (aside,) = tmp_path.glob("cache.bad-*")
    assert (aside / "cache.db").is_file()
    (warning,) = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert f"{cache.folder} is damaged" in warning
    assert str(aside) in warning
    assert again.get("1") is None
    again.put("1", REPLY)
    assert again.get("1") is not None
    again.close()
    ReplyCache(cache.folder).close()
    assert len(list(tmp_path.glob("cache.bad-*"))) == 1


def test_damage_that_shows_later_costs_no_reply(
    cache: ReplyCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first = cache._rows
    barrier = threading.Barrier(8)

    def damaged(*arguments: object, **more: object) -> None:
        barrier.wait()
        raise sqlite3.DatabaseError("database disk image is malformed")

    monkeypatch.setattr(first, "set", damaged)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: cache.put(str(number), REPLY), range(8)))
    assert cache.stats().replies == 8
    assert len(list(tmp_path.glob("cache.bad-*"))) == 1
    assert len([record for record in caplog.records if "is damaged" in record.message]) == 1


@pytest.mark.parametrize("pragma", ["query_only = 1", "max_page_count = 1"])
def test_a_disk_that_cannot_be_written_is_said_once(
    cache: ReplyCache, pragma: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A full disk and a read-only one, as SQLite itself tells of them."""
    cache.put("before", REPLY)
    cache._rows._sql(f"PRAGMA {pragma}").fetchall()
    large = replace(REPLY, text="x" * 100_000)
    for number in range(5):
        cache.put(str(number), large)
    assert cache.get("before") is not None
    assert cache.get("3") is None
    (warning,) = [record.message for record in caplog.records]
    assert "replies are not stored" in warning
    assert "full" in warning or "read-only" in warning
    # When there is room again, it goes on.
    cache._rows._sql("PRAGMA query_only = 0").fetchall()
    cache._rows._sql("PRAGMA max_page_count = 100000").fetchall()
    cache.put("after", large)
    assert cache.get("after") is not None


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("", encoding="utf-8")
    tmp_path.chmod(0o755)
    with pytest.raises(SettingsError, match=r"holds other things \(thesis.txt\); name a folder that is the cache's"):
        ReplyCache(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def door(script: object, cache: ReplyCache | None) -> tuple[CachingModel, Scripted, Ledger]:
    model, tally = Scripted(script), Ledger()  # type: ignore[arg-type]
    return CachingModel(model, cache, tally), model, tally


def test_what_was_asked_before_is_not_asked_again(cache: ReplyCache) -> None:
    model, asked, tally = door(['{"colors": ["red"]}', "blue"], cache)
    first, paid = ask(model, ASKED, Colors)
    second, saved = ask(model, ASKED, Colors)
    assert first == second == Colors(colors=["red"])
    assert model.complete(replace(ASKED, seed=3)).text == "blue"
    assert len(asked.requests) == tally.usage.calls == 2
    assert (paid.calls, saved.calls, saved.whole.calls, saved.whole.input_tokens) == (1, 0, 1, paid.input_tokens)
    assert tally.usage.saved
    assert tally.usage.saved.calls == 1


@pytest.mark.parametrize(
    "fault", [ReplyRefused("no", raw="no"), ModelError("what?"), ReplyInvalid("nothing"), "no JSON", '{"colors": 3}']
)
def test_what_is_no_good_reply_is_not_kept(cache: ReplyCache, fault: object) -> None:
    model, asked, _ = door([fault, fault, fault, *['{"colors": ["red"]}'] * 2], cache)
    with pytest.raises(ModelError):
        ask(model, ASKED, Colors)
    before = len(asked.requests)
    assert before == (3 if isinstance(fault, str | ReplyInvalid) else 1)
    assert cache.stats().replies == 0
    asked._script = ['{"colors": ["red"]}'] * 9
    assert ask(model, ASKED, Colors)[1].calls == 1
    assert len(asked.requests) == before + 1


def test_a_corrected_reply_is_kept_under_what_was_asked_first(cache: ReplyCache) -> None:
    model, asked, tally = door(["red", '{"colors": ["red"]}'], cache)
    _, paid = ask(model, ASKED, Colors)
    found, saved = ask(model, ASKED, Colors)
    assert found == Colors(colors=["red"])
    assert len(asked.requests) == 2
    assert (paid.calls, saved.calls, saved.whole.calls) == (2, 0, 2)
    assert saved.whole.input_tokens == paid.input_tokens == tally.usage.input_tokens
    assert cache.stats().replies == 1


def test_a_kept_reply_has_to_be_accepted_too(cache: ReplyCache) -> None:
    model, asked, _ = door(['{"colors": ["red"]}', '{"colors": ["blue"]}'], cache)
    ask(model, ASKED, Colors)

    read = []

    def no_red(reply: Colors) -> None:
        read.append(reply.colors[0])
        if "red" in reply.colors:
            raise ReplyInvalid("red is no color here")

    assert ask(model, replace(ASKED, accept=no_red), Colors)[0] == Colors(colors=["blue"])
    assert read.count("red") == 1
    assert ask(model, replace(ASKED, accept=no_red), Colors)[0] == Colors(colors=["blue"])
    assert len(asked.requests) == 2


def test_of_many_who_ask_the_same_one_asks_the_model(cache: ReplyCache) -> None:
    asked_once = threading.Event()

    def slow(request: ModelRequest) -> str:
        assert not asked_once.is_set()
        asked_once.set()
        threading.Event().wait(0.05)
        return '{"colors": ["red"]}'

    model, asked, tally = door(slow, cache)
    with ThreadPoolExecutor(16) as pool:
        usages = [usage for _, usage in pool.map(lambda _: ask(model, ASKED, Colors), range(16))]
    assert len(asked.requests) == 1
    assert sorted(usage.calls for usage in usages) == [0] * 15 + [1]
    assert {usage.whole.calls for usage in usages} == {1}
    assert tally.usage.saved
    assert tally.usage.saved.calls == 15
    assert len(cache._keys) == 0


def test_whoever_waited_for_a_failure_asks_again(cache: ReplyCache) -> None:
    model, asked, _ = door([ModelError("gone"), *["red"] * 15], cache)

    def work(_: int) -> str:
        try:
            return model.complete(ASKED).text
        except ModelError:
            return "failed"

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(work, range(16)))
    assert sorted(found) == ["failed", *["red"] * 15]
    assert len(asked.requests) == 2
