"""docs/reference is what docs/generate.py writes, and every key is described; templates of experiment files."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from collecting import faults
from running import python
from typer import Typer
from typer.main import get_command
from typer.testing import CliRunner

from fairagent.cli import app
from fairagent.collection.config import CollectionFile
from fairagent.evaluate.kind import shipped_kinds
from fairagent.llm.prompts.template import Head
from fairagent.papers.fairft.settings import FairFTFile
from fairagent.settings import Settings, validate
from fairagent.settings.parts import SLOTS, part_class, shipped

GENERATOR = Path(__file__).resolve().parents[1] / "docs" / "generate.py"
sys.path.append(str(GENERATOR.parent))
from described import DescribedSection, describe, kinds  # noqa: E402


@pytest.fixture(scope="module")
def generate() -> Any:
    spec = importlib.util.spec_from_file_location("generate", GENERATOR)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_pages_are_up_to_date() -> None:
    """As `make check` asks: in a process of its own, since other tests bring parts of theirs."""
    assert python(str(GENERATOR), "--check").stderr == ""


def test_the_pages_name_every_command_option_and_part(generate: Any) -> None:
    pages = generate.pages()
    assert "| `--collection`, `-c` `FILE` |" in pages["commands.md"]
    for name, function in generate.commands():
        made = Typer(add_completion=False)
        made.command()(function)
        section = pages["commands.md"].partition(f"## `{name}`\n")[2].partition("\n## ")[0]
        for one in get_command(made).params:
            # An option whose name is that of its parameter, too.
            assert all(f"`{own}" in section for own in one.opts if own.startswith("-")), (name, one.opts)
    assert "## `fairagent prompts try`" in pages["commands.md"]
    assert {f"### `{slot}: {kind}`" for slot, kind in SHIPPED} <= set(pages["parts.md"].splitlines())


# --- the keys -----------------------------------------------------------------------------------------------------

# Other tests bring parts of their own.
SHIPPED = [(slot, kind) for slot in SLOTS for kind, place in shipped(slot).items() if place.startswith("fairagent.")]
MODELS = {
    "settings": Settings,
    "collection": CollectionFile,
    "fairft": FairFTFile,
    "prompt": Head,
    **{f"experiment: {kind}": model for kind, model in shipped_kinds().items()},
    **{f"{slot}: {kind}": part_class(slot, kind) for slot, kind in SHIPPED},
}


def undescribed(section: DescribedSection, place: str = "") -> Iterator[str]:
    for key in section.keys:
        # The kind is the section's own name: its meaning is that of the section.
        if not key.meaning and key.name != "kind":
            yield f"{place}{key.name}"
        for inner in key.sections:
            yield from undescribed(inner, f"{place}{key.name}.")


def test_every_key_is_described() -> None:
    sections = [(name, section) for name, model in MODELS.items() for section in describe(model).values()]
    assert [(name, fault) for name, section in sections for fault in undescribed(section)] == []


# --- experiment files ---------------------------------------------------------------------------------------------


def activated(text: str) -> str:
    """A template with every key that stands behind a `#`."""
    return re.sub(r"^( *)#(?=\w)", r"\1", text, flags=re.MULTILINE)


def can_be_read_as_it_is_and_with_every_key(kind: str, keys: tuple[Any, ...]) -> None:
    done = CliRunner().invoke(app, ["evaluate", "--template", kind])
    assert done.exit_code == 0
    given = yaml.safe_load(done.output)
    model = shipped_kinds()[kind]
    shortest = validate(model, given, kind)
    assert set(given) == {key.name for key in keys if key.required}
    everything = yaml.safe_load(activated(done.output))
    assert list(everything) == [key.name for key in keys]
    longest = validate(model, everything, kind)
    # What is behind a # is the default, but for sections that are not there by default.
    same = [key.name for key in keys if not key.sections and key.example is None]
    assert {name: getattr(shortest, name) for name in same} == {name: getattr(longest, name) for name in same}


def test_a_template_can_be_read_as_it_is_and_with_every_key() -> None:
    assert faults(can_be_read_as_it_is_and_with_every_key, ((one, found.keys) for one, found in kinds().items())) == []


def test_a_template_of_a_kind_that_there_is_not() -> None:
    done = CliRunner().invoke(app, ["evaluate", "--template", "rankng"])
    assert done.exit_code == 2
    assert "no experiment of kind 'rankng'; did you mean 'ranking'?" in done.output
