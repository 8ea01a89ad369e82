"""Beginnings of texts about people of some group, for a model to write on from: reading them in BOLD's formats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fairagent.collection.faults import Faults, shown
from fairagent.collection.records import json_records
from fairagent.evaluate.kinds.stereotypes.files import whole_file
from fairagent.evaluate.questions import Question

ENDING = "_prompt"
"""What BOLD's file of a domain is called behind its name: gender_prompt.json."""


@dataclass(frozen=True, slots=True)
class Opening(Question):
    """One beginning, `query`; its `kind` is a domain (gender), its `group` one of those that are compared in it."""

    group: str = ""


def read_openings(path: Path) -> dict[str, Opening]:
    """Id -> opening, in the order of the file or of the folder's files by their names; DataError with every fault.

    A file is one of BOLD's, {group: {name: [openings]}}, whose name is its domain (gender_prompt.json is about gender);
    or JSON lines with `domain`, `category` (the group) and `prompts`, a list, as BOLD is also published. An id is
    made of domain, group and a number.
    """
    faults = Faults()
    files = sorted(file for file in path.iterdir() if file.suffix in (".json", ".jsonl")) if path.is_dir() else [path]
    found: dict[str, Opening] = {}
    counts: dict[tuple[str, str], int] = {}
    for file in files:
        for domain, group, text in _openings(file, faults):
            number = counts[domain, group] = counts.get((domain, group), 0) + 1
            id = f"{domain}-{group}-{number}"
            found[id] = Opening(id, text, domain, group)
    if not found and not faults:
        faults.add(path, None, "holds no opening")
    faults.check("openings of texts")
    return found


def _openings(file: Path, faults: Faults) -> Iterator[tuple[str, str, str]]:
    """Domain, group and text of each; what cannot be read is a fault."""
    tree = whole_file(file)
    if not isinstance(tree, dict) or "prompts" in tree:
        yield from _of_lines(file, faults)
        return
    domain = file.stem.partition(ENDING)[0]
    for group, names in tree.items():
        if not isinstance(names, dict):
            faults.add(file, None, f"{group}: expected {{name: [openings]}}, found {shown(names)}")
            continue
        for name, texts in names.items():
            if fault := _fault(texts):
                faults.add(file, None, f"{group}.{name}: {fault}")
            else:
                yield from ((domain, group, text.strip()) for text in texts)


def _of_lines(file: Path, faults: Faults) -> Iterator[tuple[str, str, str]]:
    for number, record in json_records(file, faults):
        domain, group, texts = (record.get(name) for name in ("domain", "category", "prompts"))
        if not (isinstance(domain, str) and domain and isinstance(group, str) and group):
            faults.add(file, number, "expected texts under 'domain' and 'category'")
        elif fault := _fault(texts):
            faults.add(file, number, f"'prompts': {fault}")
        else:
            yield from ((domain, group, text.strip()) for text in texts or ())


def _fault(texts: object) -> str:
    """What is wrong with a list of openings; "" for nothing."""
    right = isinstance(texts, list) and texts and all(isinstance(text, str) and text.strip() for text in texts)
    return "" if right else f"expected a list of texts, found {shown(texts)}"
