"""All templates: those that are shipped, replaced file by file by those of a user's folder."""

from __future__ import annotations

import difflib
from pathlib import Path

from fairagent.errors import Fault, PromptError, SettingsError
from fairagent.llm.base import Message
from fairagent.prompts.prompt import Prompt, read_prompt

_PACKAGE = Path(__file__).resolve().parents[1]


class Prompts:
    """The prompt templates of a run, by id: `Prompts()["refine_query"]`.

    All are read and checked at once. A file `<id>.j2` in `folder` replaces the shipped template of that id; it may
    use the same variables, has to use those that the shipped one requires, and asks for the same reply.

    Raises SettingsError where `folder` is none, PromptError naming every fault of every file.
    """

    def __init__(self, folder: Path | str = "") -> None:
        faults: list[Fault] = []
        shipped = {path.stem: read_prompt(path, faults) for path in _templates_in(shipped_folder())}
        self._prompts = {id: prompt for id, prompt in shipped.items() if prompt}
        # What the code passes, whatever a replacement makes of it.
        self._accepted = {id: prompt.variables for id, prompt in self._prompts.items()}
        if str(folder):
            for path in _own_templates(Path(folder)):
                if path.stem in shipped:
                    self._replace(path, faults)
                else:
                    near = difflib.get_close_matches(path.stem, shipped, n=1)
                    hint = f"did you mean {near[0]}.j2?" if near else f"there are: {', '.join(shipped)}"
                    faults.append(Fault(path, None, f"replaces no shipped template; {hint}"))
        if faults:
            raise PromptError(f"prompt templates: {len(faults)} fault{'s' * (len(faults) != 1)}", faults)

    def __getitem__(self, id: str) -> Prompt:
        """The template; raises PromptError where there is none of this id."""
        if id not in self._prompts:
            raise PromptError(f"no prompt template {id!r}; there are: {', '.join(self._prompts)}")
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
        missing = sorted(set(prompt.head.variables.required) - variables.keys())
        unknown = sorted(variables.keys() - accepted)
        if missing or unknown:
            named = [
                f"{kind} {', '.join(names)}" for kind, names in (("missing", missing), ("unknown", unknown)) if names
            ]
            raise PromptError(f"{prompt.path}: variables {'; '.join(named)}")
        return prompt.render({**dict.fromkeys(accepted), **variables})

    def _replace(self, path: Path, faults: list[Fault]) -> None:
        prompt = read_prompt(path, faults)
        shipped = self._prompts.get(path.stem)
        if prompt is None or shipped is None:
            return
        more = prompt.variables - shipped.variables
        less = set(shipped.head.variables.required) - set(prompt.head.variables.required)
        if more:
            faults.append(Fault(path, None, f"variables that it will not be given: {', '.join(sorted(more))}"))
        if less:
            faults.append(Fault(path, None, f"variables that it has to require: {', '.join(sorted(less))}"))
        if prompt.head.reply != shipped.head.reply:
            faults.append(Fault(path, None, f"reply is {prompt.head.reply!r}, but has to be {shipped.head.reply!r}"))
        self._prompts[path.stem] = prompt


def shipped_folder() -> Path:
    """Where the shipped templates are: beside the code of an installed package, or in a checkout's prompts/."""
    for folder in (_PACKAGE / "_prompts", _PACKAGE.parent / "prompts"):
        if folder.is_dir():
            return folder
    raise PromptError("the shipped prompt templates are missing from this installation; install fairagent again")


def _templates_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.j2"))


def _own_templates(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise SettingsError(f"prompts: there is no folder {folder}")
    found = _templates_in(folder)
    if not found:
        raise SettingsError(f"prompts: the folder {folder} holds no template (*.j2)")
    return found
