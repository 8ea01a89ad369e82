"""The track walked on a small made-up one: needs and refusals first, then the same submissions however it was ended."""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from typer.testing import CliRunner

from benchmarks.made_up_track import write_track
from fairagent.cli import app
from fairagent.collection.trec_fair import read_run

HERE = Path(__file__).resolve().parents[2] / "evaluations" / "trec_fair"
LONGEST, SHOWN = {2022: 500, 2021: 1000}, {2022: 20, 2021: 50}
DOCUMENTS, TOPICS, RANKINGS = 300, 2, 3
SYSTEMS = ("BM25", "agent", "FAIR-QR", "FAIR-QR, all", "FA*IR", "MMR", "DELTR", "DLF")


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"trec_fair_{name}", HERE / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


walk, draw = loaded("walk"), loaded("draw")
Walked = Callable[..., int]


@pytest.fixture(scope="module")
def tracks(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folder = tmp_path_factory.mktemp("tracks")
    return {year: write_track(folder / str(year), DOCUMENTS, year, TOPICS, median=40) for year in (2022, 2021)}


@pytest.fixture
def systems(tmp_path: Path) -> Path:
    """Fewer systems, so that it is fast."""
    whole = yaml.safe_load((HERE / "systems.yaml").read_text(encoding="utf-8"))
    paper = "FAIR-QR, gender"
    some = {
        "submitted": {name: whole["submitted"][name] for name in SYSTEMS},
        "paper": {paper: whole["paper"][paper]},
        "expected": {name: whole["expected"][name] for name in ("BM25", paper)},
    }
    file = tmp_path / "systems.yaml"
    file.write_text(yaml.safe_dump(some, sort_keys=False), encoding="utf-8")
    return file


@pytest.fixture
def walked(tmp_path: Path, systems: Path, monkeypatch: pytest.MonkeyPatch, no_variables: None) -> Walked:
    """Walk with these arguments; the exit code. The program's commands run in this process, so that it is fast."""

    def call(self: object, *command: str) -> str:
        monkeypatch.chdir(self.work)  # type: ignore[attr-defined]
        if list(command[:3]) != walk.FAIRAGENT:
            draw.main(Path(command[2]))
            return ""
        result = CliRunner().invoke(app, list(command[3:]))
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        if result.exit_code:
            print(result.stderr, file=sys.stderr)
            raise SystemExit(result.exit_code)
        return result.stdout

    def walked(*arguments: str) -> int:
        monkeypatch.chdir(tmp_path)
        options = ("--systems", str(systems), "--rankings", str(RANKINGS), "--workers", "1")
        monkeypatch.setattr("sys.argv", ["walk.py", *arguments, *options])
        try:
            walk.main()
        except SystemExit as ended:
            return ended.code if isinstance(ended.code, int) else 1
        return 0

    monkeypatch.setattr(walk.Walk, "call", call)
    return walked


def made(work: Path) -> dict[str, bytes]:
    """What a walk is for: the submissions and the tables."""
    files = [*sorted((work / "submissions").rglob("*.gz")), work / "tables.txt"]
    return {str(path.relative_to(work)): path.read_bytes() for path in files}


@pytest.mark.slow
@pytest.mark.parametrize("year", [2022, 2021])
def test_from_the_files_to_submissions_and_tables_broken_off_or_not(
    walked: Walked,
    tracks: dict[int, Path],
    tmp_path: Path,
    year: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = tmp_path / "work"
    assert walked(str(tracks[year]), "--year", str(year), "--work", str(work), "--yes") == 0
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    # What it takes stands before the first step.
    assert printed.index("files unpacked once") < printed.index("-- index")
    assert "Language model: none is asked" in printed
    coordinators, editors = (sorted((work / "submissions" / who).glob("*.gz")) for who in ("coordinators", "editors"))
    # FAIR-QR re-ranks 20: too few for a run of Task 1, and for rankings of 50. BM25 is there as it is and drawn.
    shown = len(SYSTEMS) - (SHOWN[year] > 20)
    assert (len(coordinators), len(editors)) == (len(SYSTEMS) - 1, shown + 1)
    for path in coordinators:
        run = read_run(path, year, 1)
        assert sorted(run.topics) == ["101", "102"]
        assert max(run.lengths) <= LONGEST[year]
    for path in editors:
        run = read_run(path, year, 2)
        assert run.lengths.tolist() == [SHOWN[year]] * TOPICS * RANKINGS
    pages = [
        line.split(b"\t")[2] for line in gzip.decompress((editors[0].parent / "BM25.gz").read_bytes()).splitlines()
    ]
    assert pages[: SHOWN[year]] == pages[SHOWN[year] : 2 * SHOWN[year]]
    # The paper's numbers are of 2022.
    assert any(line.split() == ["BM25", "nDCG@20", line.split()[-2], "0.6638"] for line in lines if line) == (
        year == 2022
    )
    table = (work / "tables.txt").read_text(encoding="utf-8")
    assert "Task 1, 2 topics: nDCG, then nDCG x AWRF" in table
    assert "Task 2, 2 topics: EE-L, lower is better" in table
    # DELTR and DLF have learned from the training topics.
    learned = yaml.safe_load((work / "learned.yaml").read_text(encoding="utf-8"))
    assert learned["track"]["split"] == "train"

    # Ended while submissions are written, it comes to the same bytes, and keeps what was whole.
    broken = tmp_path / "broken"
    arguments = str(tracks[year]), "--year", str(year), "--work", str(broken), "--yes"
    write, count = draw.write_whole, 0

    def ended(path: Path, text: str) -> None:
        nonlocal count
        count += 1
        if count == 3:
            raise RuntimeError("power is gone")
        write(path, text)

    with monkeypatch.context() as patch:
        patch.setattr(draw, "write_whole", ended)
        with pytest.raises(RuntimeError, match="power"):
            walked(*arguments)
    assert not (broken / "tables.txt").exists()
    before = {path.name: path.stat().st_mtime_ns for path in (broken / "submissions/editors").glob("*.gz")}
    assert walked(*arguments) == 0
    assert made(broken) == made(work)
    kept = [name for name, time in before.items() if (broken / "submissions/editors" / name).stat().st_mtime_ns == time]
    assert len(kept) == 2


def test_nothing_is_begun_without_a_yes(
    walked: Walked,
    tracks: dict[int, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    work = tmp_path / "work"
    arguments = str(tracks[2022]), "--work", str(work)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert walked(*arguments) == 2
    assert "--yes goes on" in capsys.readouterr().err
    assert walked(*arguments, "--check-only") == 0
    assert "BM25 index" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("builtins.input", lambda question: "n")
    assert walked(*arguments) == 2
    assert "nothing was begun" in capsys.readouterr().err
    assert sorted(path.suffix for path in work.iterdir()) == [".yaml"] * 5


def test_what_it_takes_is_said_before_the_files_are_there(
    walked: Walked, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert walked(str(tmp_path / "none"), "--check-only", "--model", "m", "--price", "2", "10") == 4
    printed, complaint = capsys.readouterr()
    (index,) = (line.split() for line in printed.splitlines() if line.startswith("BM25 index"))
    # 64.8 times what 100,000 made-up articles took.
    assert index[2:6] == ["64", "min", "46.0", "GB"]
    # The table's three FAIR-QRs and one in each task at five calls, an agent in each at one; 50 topics.
    assert "at most 1,400 calls, about 798,000 tokens, about $2.94" in printed
    assert "no corpus: trec_corpus_20220301_plain.json" in complaint
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
@pytest.mark.shared
def test_the_same_command_walks_the_public_slice(
    walked: Walked, tmp_path: Path, shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert walked(str(shared / "data" / "trec22_biographies"), "--work", str(tmp_path / "work"), "--yes") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    # evaluations/fair_qr has the same value of BM25.
    assert ["BM25", "nDCG@20", "0.6651", "0.6638"] in lines
    assert next(line for line in lines if line[:1] == ["agent"])[2] > "0.9569"


def test_a_damaged_file_is_found_before_anything_is_built(
    walked: Walked, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    track, work = write_track(tmp_path / "track", 50, 2022, TOPICS, median=20), tmp_path / "work"
    path = track / "trec_2022_articles_discrete_assessed.json.gz"
    path.write_bytes(path.read_bytes()[:-40])
    assert walked(str(track), "--work", str(work), "--yes") == 4
    complaint = capsys.readouterr().err
    assert f"{path}: " in complaint
    assert "fetch it again" in complaint
    assert not (work / "index").exists()
    # The others are known to be whole, and not unpacked again.
    assert str(track / "trec_corpus_20220301_plain.json.gz") in json.loads((work / "whole.json").read_text("utf-8"))
