"""Run every newcomer's script, each in an empty folder and a fresh environment, and print what each step took.

    python examples/newcomers/run.py [NAME ...]

Ends with 1 where a script fails. pip installs as it is configured on this machine.
"""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = ("own_csv", "trec", "openai", "studio")


def main() -> None:
    """Run them one after the other."""
    rows, failed = [], False
    for name in sys.argv[1:] or NAMES:
        done = subprocess.run(["sh", str(HERE / f"{name}.sh")], capture_output=True, encoding="utf-8", check=False)
        steps = re.findall(r"^=== (.+): ([\d.]+) s$", done.stdout, flags=re.MULTILINE)
        took = dict(steps)
        others = ", ".join(f"{step} {seconds}" for step, seconds in steps if step not in ("install", "total"))
        rows.append(f"| `{name}.sh` | {took.get('install', '-')} | {others} | {took.get('total', 'failed')} |")
        if done.returncode:
            failed = True
            print(done.stdout, done.stderr, file=sys.stderr)
    print("| script | install, s | other steps, s | total, s |", "|---|--:|---|--:|", *rows, sep="\n")
    sys.exit(failed)


if __name__ == "__main__":
    main()
