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
        shipped = {path.stem: read_prompt(path, faults) for path in templates_in(shipped_folder())}
        self._prompts = {id: prompt for id, prompt in shipped.items() if prompt}
        if str(folder):
            for path in templates_in(_own_folder(Path(folder))):
                self._replace(path, faults)
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
        """The messages of template `id`, filled with `variables`: all that its shipped version requires.

        Raises PromptError for a missing or unknown variable, and where the template fails on these values.
        """
        prompt, accepted = self[id], self._accepted[id]
        missing = sorted(set(prompt.head.variables.required) - variables.keys())
        unknown = sorted(variables.keys() - accepted)
        if missing or unknown:
            named = [f"{kind} {', '.join(names)}" for kind, names in (("missing", missing), ("unknown", unknown)) if names]
            raise PromptError(f"{prompt.path}: variables {'; '.join(named)}")
        return prompt.render(variables)
