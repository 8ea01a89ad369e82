"""Is this checkout what a tag says? `python .ci/release.py v1.2.3` ends with 1 and says what is not so."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

URLS = ("Documentation", "Source", "Changelog")


def faults(root: Path, tag: str) -> list[str]:
    """What has to be done before the checkout in `root` is published under `tag`."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    cited = re.search(r"^version: (.+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    version, urls = project["version"], project.get("urls", {})
    section = re.search(rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |\Z)", changes, re.MULTILINE | re.DOTALL)
    lacking = [name for name in URLS if not urls.get(name, "").startswith("https://")]
    return [
        *([] if tag == f"v{version}" else [f"the tag is {tag}, and pyproject.toml has version {version}"]),
        *([] if cited and cited[1] == version else [f"CITATION.cff has another version than {version}"]),
        *([] if section and section[1].strip() else [f"CHANGELOG.md has no section [{version}], or an empty one"]),
        *([f"[project.urls] in pyproject.toml lacks {', '.join(lacking)} (https://...)"] if lacking else []),
    ]


if __name__ == "__main__":
    found = faults(Path(__file__).resolve().parents[1], sys.argv[1])
    print(*found, sep="\n", file=sys.stderr)
    sys.exit(bool(found))
