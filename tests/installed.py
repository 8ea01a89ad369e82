"""What is published, checked as somebody gets it: `make dist` builds dist/ and runs `python tests/installed.py dist`.

The wheel, which was built from the source archive, holds every file of the package and nothing else; installed without
the checkout, the program works in an empty folder. The environment that it is installed into sees the packages of this
Python, so that nothing is downloaded; `--alone` installs the light core's dependencies as well (.3 GB).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WITHIN = {"fairagent": "fairagent", "prompts": "fairagent/_prompts"}
"""Folder of the checkout -> folder of the wheel."""
LEFT_OUT = (".github",)
"""What the source archive does not hold of the checkout."""
MADE = ("PKG-INFO",)
"""What it holds besides."""
PACKAGES = [place for place in sys.path if place.endswith("-packages")]


def wheel_faults(wheel: Path, root: Path = ROOT) -> list[str]:
    """What the wheel lacks, has in other bytes, or has too much."""
    with zipfile.ZipFile(wheel) as archive:
        packed = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
    ours = {
        f"{inside}/{path.relative_to(root / folder).as_posix()}": path.read_bytes()
        for folder, inside in WITHIN.items()
        for path in (root / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    return [
        *(f"{name} is not in the wheel" for name in sorted(ours.keys() - packed.keys())),
        *(f"{name} should not be in the wheel" for name in sorted(packed.keys() - ours.keys())),
        *(f"{name} has other bytes" for name in sorted(ours.keys() & packed.keys()) if ours[name] != packed[name]),
    ]


def metadata_faults(wheel: Path) -> list[str]:
    """What is said of the package and is not so."""
    with zipfile.ZipFile(wheel) as archive:
        folder = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA")).partition("/")[0]
        said = Parser().parsestr(archive.read(f"{folder}/METADATA").decode("utf-8"))
        licensed = f"{folder}/licenses/LICENSE" in archive.namelist()
    expected = {"Name": PROJECT["name"], "Version": PROJECT["version"], "License-Expression": PROJECT["license"]}
    return [
        *(f"{key} is {said[key]}, not {value}" for key, value in expected.items() if said[key] != value),
        *([] if licensed else ["the license is not in the wheel"]),
        *([] if said["Description-Content-Type"] == "text/markdown" else ["the README is not its description"]),
    ]


def checked_in() -> set[str]:
    """The files that git knows."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    return {name for name in listed.stdout.split("\0") if name and name.partition("/")[0] not in LEFT_OUT}


def source_faults(source: Path, known: set[str]) -> list[str]:
    """What the source archive lacks of the files of the checkout, or has too much."""
    with tarfile.open(source) as archive:
        inside = {one.name.partition("/")[2] for one in archive.getmembers() if one.isfile()} - {*MADE}
    return [
        *(f"{name} is not in the source archive" for name in sorted(known - inside)),
        *(f"{name} should not be in the source archive" for name in sorted(inside - known)),
    ]


def try_installed(wheel: Path, alone: bool) -> None:
    """Install the wheel into an environment of its own, and run the program in an empty folder."""
    with TemporaryDirectory() as folder:
        empty, venv = Path(folder) / "empty", Path(folder) / "venv"
        empty.mkdir()
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        python = str(venv / "bin" / "python")
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if alone:
            install += ["-c", str(ROOT / "constraints.txt")]
        else:
            # The link to the checkout that lies in that folder is not followed: only its packages are seen.
            (site,) = venv.glob("lib/python*/site-packages")
            (site / "packages.pth").write_text("\n".join(PACKAGES), encoding="utf-8")
            install += ["--no-deps", "--no-index"]
        subprocess.run([*install, str(wheel)], check=True)

        def run(*command: str) -> str:
            names = ("FAIRAGENT_", "OPENAI_", "PYTHON")
            environment = {name: value for name, value in os.environ.items() if not name.startswith(names)}
            print("$", Path(command[0]).name, *command[1:], flush=True)
            done = subprocess.run(command, cwd=empty, env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(f"ended with {done.returncode}\n{done.stdout}{done.stderr}")
            return done.stdout

        program = str(venv / "bin" / "fairagent")
        where = run(python, "-c", "import fairagent; print(fairagent.__file__)").strip()
        checks = {f"{where} is not the installed one": Path(where).is_relative_to(venv)}
        for said in (run(program, "--version"), run(python, "-m", "fairagent", "--version")):
            checks[f"--version says {said!r}"] = PROJECT["version"] in said
        run(program, "demo", "--people", "200")
        demo = ("-c", "fairagent-demo/collection.yaml", "--index", "fairagent-demo/index", "--set", "engine=bm25")
        hits = json.loads(run(program, "search", "lawyers", *demo, "--json"))["hits"]
        checks["search found nothing"] = bool(hits)
        checks["no prompt template was found"] = "refine_query" in run(program, "prompts", "list")
        run(program, "doctor", *demo)
        if faults := [fault for fault, holds in checks.items() if not holds]:
            sys.exit("\n".join(faults))


def main() -> None:
    """Check the one wheel and the one source archive of a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--alone", action="store_true", help="install the dependencies, too")
    chosen = parser.parse_args()
    (wheel,), (source,) = (list(chosen.folder.resolve().glob(kind)) for kind in ("*.whl", "*.tar.gz"))
    if faults := [*wheel_faults(wheel), *metadata_faults(wheel), *source_faults(source, checked_in())]:
        sys.exit("\n".join(faults))
    print(*(f"{path.name} is whole: {path.stat().st_size:,} bytes" for path in (wheel, source)), sep="\n")
    try_installed(wheel, chosen.alone)


if __name__ == "__main__":
    main()
