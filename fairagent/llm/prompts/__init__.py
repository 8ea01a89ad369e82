"""Prompt templates, checked as a whole and rendered in a sandbox, and the calls that parts may make with them.

`Prompts` are the shipped ones, replaced file by file by those of a variant or of a user's folder. `Case` and `Calls`
are worst-case estimates, which each part gives before any call is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fairagent.errors import Fault, PromptError, SettingsError
from fairagent.llm.prompts.template import LARGEST_TEMPLATE, Prompt, prompt_of, read_prompt
from fairagent.llm.request import Message, ModelRequest, Narrowed, estimate_tokens, longest_reply
from fairagent.settings import ModelSettings, Settings
from fairagent.settings.faults import no_such

__all__ = [
    "LETTER",
    "STAND_IN",
    "Calls",
    "Case",
    "Prompt",
    "PromptCheck",
    "Prompts",
    "check_prompts",
    "folder_of",
    "shipped_files",
    "shipped_folder",
    "source_relative_to",
    "together",
    "variants",
]

_PACKAGE = Path(__file__).resolve().parents[2]

GROUP = "fairagent.prompts"
"""Entry points of other packages, one a template: its id, and the module in whose folder `<id>.j2` lies."""


class Prompts:
    """The prompt templates of a run, by id: `Prompts()["refine_query"]`.

    `source` is "" for the default, the name of a shipped variant ("few-shot"), or a folder ("./few-shot" for one of
    that name). A file `<id>.j2` in it replaces the default template of that id; it may use the same variables, has to
    use those that the default requires, and asks for the same reply, or for that with the reasoning before it.

    `drafts` are texts of templates by id that are no files yet; each takes its file's place, and is checked as one.

    All are read and checked at once, and replacements are filled with examples of what they will be given; those of
    other packages are read when they are used, or replaced. Raises SettingsError where there is no such folder,
    PromptError naming every fault of every file.
    """

    def __init__(self, source: Path | str = "", drafts: Mapping[str, str] = MappingProxyType({})) -> None:
        faults: list[Fault] = []
        shipped = {id: read_prompt(path, faults) for id, path in shipped_files().items()}
        self._prompts = {id: prompt for id, prompt in shipped.items() if prompt}
        # What the code passes, whatever a replacement makes of it.
        self._accepted = {id: prompt.variables for id, prompt in self._prompts.items()}
        self.folder = folder_of(source)
        own = _own_templates(self.folder) if self.folder else []
        for path in own:
            if path.stem not in drafts:
                self._replace(path, shipped, faults)
        for id, text in drafts.items():
            path, content = (self.folder or Path()) / f"{id}.j2", text.encode("utf-8", "replace")
            if len(content) > LARGEST_TEMPLATE:
                faults.append(Fault(path, None, f"longer than {LARGEST_TEMPLATE:,} bytes"))
            elif (draft := prompt_of(path, content, faults, self._prompts.get(id))) and id in self._prompts:
                self._prompts[id] = draft
        # What was read: the shipped ones, and those of the folder.
        self.files = (*shipped_files().values(), *own)
        if faults:
            raise _error(faults)

    def __getitem__(self, id: str) -> Prompt:
        """The template; raises PromptError where there is none of this id, or its package is at fault."""
        if id not in self._prompts and not self._load_from_package(id):
            raise PromptError(no_such("prompt template", id, self._prompts))
        return self._prompts[id]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all templates, in order."""
        return tuple(self._prompts)

    def render(self, id: str, /, **variables: object) -> tuple[Message, ...]:
        """The messages of template `id`, filled with `variables`; optional ones that are not given are None.

        Raises PromptError for a missing or unknown variable, and where the template fails on these values.
        """
        prompt, accepted = self[id], self._accepted[id]
        named = {
            "missing": sorted(set(prompt.head.variables.required) - variables.keys()),
            "unknown": sorted(variables.keys() - accepted),
        }
        if wrong := "; ".join(f"{what} {', '.join(names)}" for what, names in named.items() if names):
            raise PromptError(f"{prompt.path}: variables {wrong}")
        return prompt.render({**dict.fromkeys(accepted), **variables})

    def request(
        self,
        id: str,
        variables: Mapping[str, object],
        temperature: float | None = None,
        accept: Callable[[Any], None] | None = None,
        narrowed: Narrowed | None = None,
        judged: int = 1,
    ) -> ModelRequest:
        """Template `id` filled with `variables`, with the longest reply that it says; raises what `render` raises.

        `judged`: how many things the reply judges.
        """
        messages, most = self.render(id, **variables), self[id].head.max_tokens
        return ModelRequest(
            messages, None, temperature, most, accept=accept, narrowed=narrowed, prompt=id, judged=judged
        )

    def _load_from_package(self, id: str) -> bool:
        """Whether another package has a template of this id, which is then loaded."""
        claims = tuple(entry_points(group=GROUP, name=id))
        if not claims:
            return False
        try:
            spec = find_spec(claims[0].value)
        except ImportError:
            spec = None
        if len(claims) > 1 or spec is None or spec.origin is None:
            named = " and ".join(f"{one.dist.name if one.dist else 'a package'} ({one.value})" for one in claims)
            raise PromptError(f"prompt template {id!r} of {named}: expected one module, in whose folder {id}.j2 lies")
        faults: list[Fault] = []
        prompt = read_prompt(Path(spec.origin).with_name(f"{id}.j2"), faults)
        if prompt is None:
            raise _error(faults)
        self._prompts[id], self._accepted[id] = prompt, prompt.variables
        return True

    def _replace(self, path: Path, shipped: Mapping[str, Prompt | None], faults: list[Fault]) -> None:
        """Put the template of a file in the place of the shipped one of its name."""
        id = path.stem
        try:
            known = id in shipped or self._load_from_package(id)
        except PromptError as error:
            faults += error.faults or [Fault(path, None, str(error))]
            return
        if not known:
            faults.append(Fault(path, None, no_such("shipped template", id, shipped)))
        prompt = read_prompt(path, faults, self.folder, self._prompts.get(id))
        if prompt and id in self._prompts:
            self._prompts[id] = prompt


@dataclass(frozen=True, slots=True)
class PromptCheck:
    """The templates of a source, and every fault of every file by file and line; with one there are no `prompts`."""

    prompts: Prompts | None
    files: tuple[Path, ...]
    faults: tuple[Fault, ...]


def check_prompts(source: Path | str = "", drafts: Mapping[str, str] = MappingProxyType({})) -> PromptCheck:
    """What `Prompts` of the same would come to; raises SettingsError where there is no such folder."""
    try:
        prompts = Prompts(source, drafts)
        return PromptCheck(prompts, prompts.files, ())
    except PromptError as error:
        folder = folder_of(source)
        files = (*shipped_files().values(), *(_own_templates(folder) if folder else ()))
        return PromptCheck(None, files, error.faults)


def _error(faults: list[Fault]) -> PromptError:
    faults = sorted(dict.fromkeys(faults), key=lambda fault: (str(fault.path), fault.line or 0))
    return PromptError(f"prompt templates: {len(faults)} error{'s' * (len(faults) != 1)}", faults)


def shipped_folder() -> Path:
    """Where the shipped templates are: next to the code of an installed package, or in a checkout's prompts/."""
    for folder in (_PACKAGE / "_prompts", _PACKAGE.parent / "prompts"):
        if folder.is_dir():
            return folder
    raise PromptError("the shipped prompt templates are missing from this installation; install fairagent again")


def shipped_files() -> dict[str, Path]:
    """Id -> file of every shipped template, in order: ours, and those that ask what a paper asks (`papers/`)."""
    paths = [path for pattern in ("*.j2", "papers/*.j2") for path in shipped_folder().glob(pattern)]
    return {path.stem: path for path in sorted(paths, key=lambda path: path.stem)}


def variants() -> tuple[str, ...]:
    """The names of the shipped variants, in order."""
    return tuple(sorted(path.name for path in (shipped_folder() / "variants").glob("*") if path.is_dir()))


def folder_of(source: Path | str) -> Path | None:
    """The folder of the variant or the folder that `source` names; None for the default templates."""
    if str(source) in variants():
        return shipped_folder() / "variants" / str(source)
    return Path(source) if str(source) else None


def source_relative_to(source: str, folder: Path) -> str:
    """`source` with a relative folder taken from `folder`: for files that name the templates of their own folder."""
    return source if not source or source in variants() else str((folder / source).absolute())


def _own_templates(folder: Path) -> list[Path]:
    if not folder.is_dir():
        known = f"; shipped variants: {', '.join(variants())}" if len(folder.parts) == 1 else ""
        raise SettingsError(f"prompts: there is no folder {folder}{known}")
    if not (templates := sorted(folder.glob("*.j2"))):
        raise SettingsError(f"prompts: the folder {folder} holds no template (*.j2)")
    return templates


LETTER = "x"
"""What stands for the letters of texts that are not known yet; a token is four of them."""
STAND_IN = "keywords"
"""A word of usual length."""


@dataclass(frozen=True, slots=True)
class Calls:
    """A number of calls of one model, their input and output tokens in total, and whether replies may be corrected."""

    model: ModelSettings
    calls: int
    input_tokens: int
    output_tokens: int
    corrected: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """The case that a part gives its worst case for: these queries, under these settings.

    `group` is the longest name among the groups, with its dimension.
    """

    settings: Settings
    prompts: Prompts
    queries: Sequence[str]
    group: tuple[str, str] = ("", "")

    def calls(self, prompt: str, times: int = 1, judged: int = 1, **variables: object) -> Calls:
        """`times` calls for each query, about so many things each; `variables` are the template's but for the query."""
        around = self.tokens(prompt, query="", **variables)
        read = times * sum(around + estimate_tokens(query) for query in self.queries)
        return self.counted(prompt, times * len(self.queries), read, judged)

    def tokens(self, prompt: str, **variables: object) -> int:
        """About how many tokens the template filled with `variables` has."""
        return estimate_tokens(*(text for _, text in self.prompts.render(prompt, **variables)))

    def counted(self, prompt: str, calls: int, read: int, judged: int = 1) -> Calls:
        """That many calls with that many input tokens in total, each with the longest reply."""
        model, head = self.settings.model, self.prompts[prompt].head
        return Calls(model, calls, read, calls * longest_reply(model, head.max_tokens, judged), head.reply != "text")


def together(model: ModelSettings, some: Iterable[Calls]) -> Calls:
    """The sum of several calls of one model."""
    counts = [(one.calls, one.input_tokens, one.output_tokens) for one in some]
    calls, read, written = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0, 0)
    return Calls(model, calls, read, written)
