"""docs/prompts_and_models.md and its reference say what is so: every template, variable, filter, reply and limit."""

from __future__ import annotations

import re
from pathlib import Path

from fairagent.llm.prompts import Prompts, sandbox, template, variants
from fairagent.search.refine import LONGEST_KEYWORD, MOST_KEYWORDS, REPLIES, LlmConfig
from fairagent.storage.readers import parse_yaml

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = (DOCS / "prompts_and_models.md").read_text(encoding="utf-8")
REFERENCE = (DOCS / "reference" / "prompts.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return GUIDE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_every_template_and_variant_is_named() -> None:
    assert all(f"`{name}`" in REFERENCE for name in Prompts().ids)
    assert all(f"`{name}`" in GUIDE for name in variants())


def test_every_variable_is_explained_and_no_other() -> None:
    prompts = Prompts()
    explained = parse_yaml(Path(template.__file__).with_name("variables.yaml").read_text(encoding="utf-8"))
    of_all = explained.pop("all")
    used = {id: set(prompts[id].variables) for id in prompts.ids}
    assert all(set(names) <= used[id] for id, names in explained.items())
    assert set(of_all) == {name for names in used.values() for name in names}


def test_every_reply_is_explained() -> None:
    named = {prompts[id].head.reply for prompts in map(Prompts, ("", *variants())) for id in prompts.ids}
    rows = re.findall(r"^\| `(\w+)` \| `\{", REFERENCE.partition("## Forms of replies")[2], re.MULTILINE)
    assert {*rows, "text"} == named
    assert set(REPLIES) <= set(rows)


def test_the_language_and_its_limits() -> None:
    text = section("What a file looks like")
    (filters,) = re.findall(r"^\| filters \| (.*) \|$", text, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", filters)) == set(sandbox._FILTERS)
    for limit in (
        f"{template.LARGEST_TEMPLATE // 1024} kB, {sandbox.MOST_LOOPS} loops and {sandbox.DEEPEST} levels",
        f"a prompt {sandbox.LARGEST // 1024} kB",
    ):
        assert limit in " ".join(text.split())
    keywords = section("What becomes of keywords")
    assert f"At most {MOST_KEYWORDS}, of at most {LONGEST_KEYWORD} characters" in keywords
    assert f"`drift` ({LlmConfig().drift:.1g})".replace("0.", ".") in keywords


def test_the_template_shown_can_be_read(tmp_path: Path) -> None:
    (shown,) = re.findall(r"^```jinja\n(---\n.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    filled = shown.replace(
        '"group"', '"at": [{{ dimension|tojson }}, {{ share|tojson }}, {{ target|tojson }}], "group"'
    )
    (tmp_path / "refine_query.j2").write_text(filled, encoding="utf-8")
    assert Prompts(tmp_path)["refine_query"].head.version == 3
