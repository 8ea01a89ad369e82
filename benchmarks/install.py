"""What an installation costs: seconds, MB and packages, from a fresh virtual environment, side by side.

    python benchmarks/install.py [--extras "" studio] [--all] [--first]

A row is `pip install .` of this checkout (with the extras) into an environment of its own, which is deleted afterwards;
`constraints.txt` holds torch at its CPU build. MB are those of site-packages without pip and setuptools, which every
environment has. Seconds are those of a second installation, with pip's cache filled, unless `--first` says otherwise
(its cache is then left out, so all is downloaded). `--all` installs everything as well, which takes minutes. Then a
CSV of 3,000 rows is searched fairly for the first time with the light core: the seconds until its list is there.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OURS = ("pip", "setuptools", "_distutils_hack", "pkg_resources")
ROWS = 3_000
FIRST = """
from fairagent import FairAgent
for hit in FairAgent.from_records("people.csv", groups=["gender"], target="uniform").search("court law").hits:
    print(hit.rank, hit.id, dict(hit.groups))
"""


@dataclass(frozen=True)
class Installed:
    """One environment: what was installed, the seconds that took, MB (2**20 bytes) on disk, packages."""

    what: str
    seconds: float
    megabytes: float
    packages: int
    search: float | None = None


def install(extra: str, cached: bool) -> Installed:
    """Install this checkout with an extra ("" for none) into a new environment, and measure."""
    what = f".[{extra}]" if extra else "."
    with tempfile.TemporaryDirectory() as folder:
        venv = Path(folder) / "venv"
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        python = str(venv / "bin" / "python")
        pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        more = [] if cached else ["--no-cache-dir"]
        constrained = [*pip, "install", *more, "-c", str(ROOT / "constraints.txt"), what]
        subprocess.run(constrained, cwd=ROOT, check=True, stderr=subprocess.DEVNULL)
        seconds = time.perf_counter() - started
        (site,) = venv.glob("lib/python*/site-packages")
        size = sum(_size(path) for path in site.iterdir() if not path.name.startswith(OURS))
        listed = subprocess.run([*pip, "freeze"], check=True, capture_output=True, text=True).stdout
        return Installed(what, seconds, size / 2**20, len(listed.splitlines()), None if extra else first_list(python))


def first_list(python: str) -> float:
    """Seconds of a program that searches a CSV file of its own for the first time."""
    with tempfile.TemporaryDirectory() as folder:
        with (Path(folder) / "people.csv").open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(["id", "text", "gender"])
            rows.writerows(
                (n, f"Person {n} wrote of law {n % 7} and of court {n % 11}.", ("female", "male")[n % 3 == 0])
                for n in range(ROWS)
            )
        started = time.perf_counter()
        subprocess.run([python, "-c", FIRST], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - started


def _size(path: Path) -> int:
    """Bytes on disk, as `du` counts them."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(one.lstat().st_blocks * 512 for one in files)


def main() -> None:
    """Install, measure, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extras", nargs="*", default=["", "studio"], help='"" is the light core alone')
    parser.add_argument("--all", action="store_true", help="everything as well (minutes, 2.5 GB)")
    parser.add_argument("--first", action="store_true", help="without pip's cache: everything is downloaded")
    chosen = parser.parse_args()
    print(f"{'pip install':<14}{'seconds':>9}{'MB':>8}{'packages':>10}{'first fair list, s':>20}")
    rows: list[Installed] = []
    for extra in [*chosen.extras, *(["all"] if chosen.all else [])]:
        rows.append(one := install(extra, not chosen.first))
        search = "" if one.search is None else f"{one.search:.1f}"
        print(f"{one.what:<14}{one.seconds:>9.1f}{one.megabytes:>8.0f}{one.packages:>10}{search:>20}", flush=True)
    least = rows[0]
    for other in rows[1:]:
        seconds, size = other.seconds / least.seconds, other.megabytes / least.megabytes
        print(f"{other.what} against {least.what}: {seconds:.1f} times the seconds, {size:.1f} times the MB")


if __name__ == "__main__":
    main()
