"""Writes docs/reference/ from the models, the table of parts, the templates and the commands.

And the experiment files that `fairagent evaluate --template KIND` prints, into fairagent/cli/templates.

python docs/generate.py            writes the pages
python docs/generate.py --check    writes nothing; exit code 1 and their names where pages are not what it would write
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from enum import Enum
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args, get_type_hints

from described import Key, describe, kind_template, kinds
from typer import Typer
from typer.models import OptionInfo

from fairagent import extend
from fairagent.answer.filtering import Verdicts
from fairagent.cli.app import COMMANDS, command
from fairagent.cli.config import flow
from fairagent.cli.evaluate import TEMPLATES
from fairagent.collection.config import CollectionFile
from fairagent.llm.prompts import Prompts
from fairagent.llm.prompts.template import meaning, specimens
from fairagent.llm.request import Reply, ToolCalls
from fairagent.papers.debias_rag.avoid import Diagnoses
from fairagent.papers.debias_rag.benchmarks.preference import Order
from fairagent.papers.debias_rag.stage import Rewrites
from fairagent.papers.fairft.settings import FairFTFile
from fairagent.search.loop.group_words import GroupKeywords, GroupPassages
from fairagent.search.refine import REPLIES
from fairagent.search.rerank.listwise import Permutation
from fairagent.settings import Settings
from fairagent.settings.parts import SLOTS, part_class, shipped
from fairagent.settings.tree import FOLDER, profiles
from fairagent.storage.readers import parse_yaml

REFERENCE = Path(__file__).resolve().parent / "reference"
BAR = r"\|"
MADE = "<!-- Made by docs/generate.py: change what it describes, then run it. -->"

SETTINGS = """\
Each key can stand in a settings file, in a call (`--set context.documents=5`), in a variable
(`FAIRAGENT_CONTEXT__DOCUMENTS=5`) and in `open_agent(..., context={"documents": 5})`. What `engine`, `rerank` and the
other parts may be: [Parts](parts.md)."""
PARTS = """\
A part is named by its kind (`rerank: mmr`), or by its kind and keys (`rerank: {kind: mmr, relevance: 0.7}`). Parts of
your own stand beside these: [Extending](../extending.md)."""
CASES = """\
Each case has a test of its number (`pytest tests -k test_36`), or one that
`tests/faults/cases.yaml` names. What a retry, a correction and a fatal error are, and what is checked when:
[What happens when something goes wrong](../reliability.md)."""
PROMPTS = """\
Texts have no control, zero-width and bidirectional characters. A variable that need not be used may be none."""
REPLY_FORMS = """\
`text` is free text. A template has to keep the form of the one that it replaces; `Keywords` may become
`ReasonedKeywords`."""
FORMS: dict[str, type[Reply]] = REPLIES | {
    reply.__name__: reply
    for reply in (
        GroupKeywords,
        GroupPassages,
        ToolCalls,
        Permutation,
        Verdicts,
        Rewrites,
        Diagnoses,
        Order,
        Permutation,
    )
}
EXPERIMENT = """\
Paths are relative to the file. `fairagent evaluate --template KIND` prints a commented file to start from."""


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """A Markdown table, and an empty line."""
    for cells in (head, ("---",) * len(head), *rows):
        yield f"| {' | '.join(cell.replace('|', BAR) or ' ' for cell in cells)} |"
    yield ""


def keys_of(keys: Iterable[Key], place: str = "", level: int = 3) -> Iterator[str]:
    """A table of keys, then each section that they hold, under its place in the file."""
    keys = tuple(keys)
    yield from table(("key", "type", "default", "meaning"), (row(key) for key in keys))
    for key in keys:
        for section in key.sections:
            within = f"{place}{key.name}{'' if key.nested else '.NAME' if 'mapping' in key.type else '[]'}"
            form = next((f", {one.type}" for one in section.keys if one.name == "kind"), "") if key.sections[1:] else ""
            yield f"{'#' * level} `{within}`{form}\n\n{section.meaning}\n"
            yield from keys_of(section.keys, f"{within}.", level)


def row(key: Key) -> tuple[str, str, str, str]:
    """A key's line in the table."""
    default = "*see below*" if key.nested and key.default else f"`{flow(key.default)}`"
    return f"`{key.name}`", key.type, "*required*" if key.required else default, key.meaning


def file_page(title: str, model: Any, about: str) -> Iterator[str]:
    """A page for a file that is one model."""
    yield f"# {title}\n\n{about}\n"
    yield from keys_of(describe(model)[""].keys, level=2)


def settings_page() -> Iterator[str]:
    """All settings, and the shipped profiles."""
    yield from file_page("Settings", Settings, SETTINGS)
    yield "## Profiles\n\n`profile: NAME` lays these settings below those that name it.\n"
    for name in profiles():
        text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8").rstrip()
        yield f"### `{name}`\n\n```yaml\n{text}\n```\n"


def parts_page() -> Iterator[str]:
    """Every kind of every part that is shipped."""
    yield f"# Parts\n\n{PARTS}\n"
    defaults = {key.name: flow(key.default) for key in describe(Settings)[""].keys}
    for slot in SLOTS:
        there = shipped(slot)
        yield f"## `{slot}`\n\nDefault: `{defaults[slot]}`. Entry points: `{SLOTS[slot].group}`.\n"
        for kind in there:
            section = describe(part_class(slot, kind))[""]
            file = there[kind].partition(":")[0].replace(".", "/")
            yield f"### `{slot}: {kind}`\n\n{section.meaning} (`{file}.py`)\n"
            if keys := [key for key in section.keys if key.name != "kind"]:
                yield from keys_of(keys, level=4)


def experiment_page() -> Iterator[str]:
    """The experiment file: what all kinds share, then what each has of its own."""
    # An example is for templates: each kind may have its own.
    described = {kind: [replace(key, example=None) for key in section.keys] for kind, section in kinds().items()}
    first, *others = described.values()
    shared = [key for key in first if all(key in other for other in others)]
    yield f"# Experiment file\n\n{EXPERIMENT}\nThe kinds are {', '.join(f'`{kind}`' for kind in kinds())}.\n"
    yield "## All kinds\n"
    yield from keys_of(shared)
    for kind, section in kinds().items():
        yield f"## Kind `{kind}`\n\n{section.meaning}\n"
        if own := [key for key in described[kind] if key not in shared]:
            yield from keys_of(own)


def prompts_page() -> Iterator[str]:
    """Each template with what it is given, then the forms of their replies."""
    yield f"# Prompt templates\n\n{PROMPTS}\n"
    prompts = Prompts()
    for id in prompts.ids:
        head = prompts[id].head
        length = f"; at most {head.max_tokens} tokens" if head.max_tokens else ""
        yield f"## `{id}`\n\n{head.purpose} Version {head.version}; reply: `{head.reply}`{length}.\n"
        given = {**dict.fromkeys(head.variables.required, "yes"), **dict.fromkeys(head.variables.optional, "no")}
        shown = {name: json.dumps(specimens()[id][name], ensure_ascii=False) for name in given}
        rows = ((f"`{name}`", needed, meaning(id, name), f"`{shown[name]}`") for name, needed in given.items())
        yield from table(("variable", "has to be used", "meaning", "example"), rows)
    yield f"## Forms of replies\n\n{REPLY_FORMS}\n"
    forms = (
        (f"`{name}`", f"`{form(reply)}`", " ".join(inspect.cleandoc(reply.__doc__ or "").split()))
        for name, reply in FORMS.items()
    )
    yield from table(("reply", "its form", "what is checked"), forms)


def cases_page() -> Iterator[str]:
    """The cases of tests/faults, by subject."""
    yield f"# What can go wrong\n\n{CASES}\n"
    sections = parse_yaml((Path(__file__).parents[1] / "tests" / "faults" / "cases.yaml").read_text(encoding="utf-8"))
    for title, cases in sections.items():
        yield f"## {title}\n"
        yield from table(("", "case", "what happens"), ((str(number), *case[:2]) for number, case in cases.items()))


def form(reply: type[Reply]) -> str:
    """The keys of a reply, with those of the items of its lists."""
    keys = []
    for name, field in reply.model_fields.items():
        inner = next(
            (one for one in get_args(field.annotation) if isinstance(one, type) and issubclass(one, Reply)), None
        )
        keys.append((field.alias or name) + (f": [{form(inner)}]" if inner else ""))
    return f"{{{', '.join(keys)}}}"


def commands_page() -> Iterator[str]:
    """Every command with its arguments and options."""
    yield "# Command line\n\nExit codes: 0 done, 2 usage, 3 missing prerequisite, 4 bad data, 5 model or provider,"
    yield "6 budget, 7 done but for some topics, the end of an answer or some verdicts of a filter, 8 done and a"
    yield "threshold missed; 128 and the number of the signal that ended it: 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP,"
    yield "141 where nobody reads on (`| head -1`). Output that cannot be written, as to a full disk, is 3. With"
    yield "nohup it ignores SIGHUP.\n"
    for name, function in commands():
        yield f"## `{name}`\n\n{inspect.getdoc(function)}\n"
        types = get_type_hints(function, include_extras=True)
        rows = [option(types[one.name], one) for one in inspect.signature(function).parameters.values()]
        if rows:
            yield from table(("argument or option", "default", "meaning"), rows)


def commands() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The commands, those of groups of commands after the others."""
    for name in COMMANDS:
        found = command(name)
        if not isinstance(found, Typer):
            yield f"fairagent {name}", found
            continue
        for one in found.registered_commands:
            if one.callback:
                yield f"fairagent {name} {one.name or one.callback.__name__.replace('_', '-')}", one.callback


def option(annotated: Any, parameter: inspect.Parameter) -> tuple[str, str, str]:
    """The line of an argument or an option."""
    type_, info = get_args(annotated)
    # Of `Option("--json")` in an annotation, typer takes the first name for the default.
    named = [one for one in (info.default, *(info.param_decls or ())) if isinstance(one, str)]
    choices = [str(one.value) for one in type_] if isinstance(type_, type) and issubclass(type_, Enum) else []
    value = f"`{' or '.join(choices) or info.metavar or parameter.name.upper()}`"
    if isinstance(info, OptionInfo):
        if not named:  # typer names it after the parameter, and a switch twice
            own = parameter.name.replace("_", "-")
            named = [f"--{own}/--no-{own}" if type_ is bool else f"--{own}"]
        value = ", ".join(f"`{one}`" for one in named) + (f" {value}" if type_ is not bool else "")
    default = getattr(parameter.default, "value", parameter.default)
    unset = default is None or default is False or default == ""
    default = "*required*" if default is parameter.empty else "" if unset else f"`{default}`"
    return value, default, info.help or ""


def extend_page() -> Iterator[str]:
    """The public names, each with its home and the first sentence of its documentation."""
    yield "# fairagent.extend\n"
    yield "What parts, measures and kinds of experiments of your own are made of: [Extending](../extending.md).\n"
    rows = []
    for node in ast.parse(Path(extend.__file__).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("fairagent"):
            for name in (one.name for one in node.names):
                known = constants(node.module).get(name) or inspect.getdoc(getattr(extend, name)) or ""
                rows.append((f"`{name}`", f"`{node.module}`", known.partition("\n\n")[0].replace("\n", " ")))
    yield from table(("name", "from", "what it is"), rows)


def constants(module: str) -> dict[str, str]:
    """The docstrings of a module's constants, by name."""
    body = ast.parse(inspect.getsource(import_module(module))).body
    return {
        ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target): inspect.cleandoc(text)
        for node, after in pairwise(body)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
        and isinstance(text := after.value.value, str)
    }


WRITTEN = "differences.md"
"""The page of the reference that is written by hand; its rows name their tests."""
PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "settings.md": settings_page,
    "parts.md": parts_page,
    "experiment.md": experiment_page,
    "collection.md": partial(file_page, "Collection file", CollectionFile, "See [your data](../your_data.md)."),
    "fairft.md": partial(
        file_page, "FairFT file", FairFTFile, "See [FairFT](../../fairagent/papers/fairft/README.md)."
    ),
    "prompts.md": prompts_page,
    "cases.md": cases_page,
    "commands.md": commands_page,
    "extend.md": extend_page,
}


def pages() -> dict[str, str]:
    """Name of a page -> its text."""
    texts = {name: re.sub(r"\n{3,}", "\n\n", "\n".join(page())) for name, page in PAGES.items()}
    # Outside of code, a < would begin an element of HTML.
    shown = {name: re.sub(r"(`[^`\n]*`)|<", lambda found: found[1] or "&lt;", text) for name, text in texts.items()}
    return {name: f"{MADE}\n\n{text.rstrip()}\n" for name, text in shown.items()}


def main(check: bool) -> int:
    """Write the pages, or name those that are not up to date."""
    made = {REFERENCE / name: text for name, text in pages().items()}
    made |= {TEMPLATES / f"{kind}.yaml": kind_template(kind, section) for kind, section in kinds().items()}
    written = [path for path in (*REFERENCE.glob("*.md"), *TEMPLATES.glob("*.yaml")) if path.name != WRITTEN]
    there = {path: path.read_text(encoding="utf-8") for path in written}
    stale = sorted(path for path in {*made, *there} if made.get(path) != there.get(path))
    if check:
        if stale:
            names = ", ".join(path.name for path in stale)
            print(f"{names} not up to date; run `python docs/generate.py`", file=sys.stderr)
        return bool(stale)
    REFERENCE.mkdir(exist_ok=True)
    TEMPLATES.mkdir(exist_ok=True)
    for path in stale:
        path.write_text(made[path], encoding="utf-8") if path in made else path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
