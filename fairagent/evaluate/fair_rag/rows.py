"""The rows of a Fair RAG experiment: each system in its own order, and drawn at random at each alpha."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fairagent.collection.lamp import parse_task
from fairagent.evaluate.fair_rag.section import Draws, FairRag
from fairagent.evaluate.plan import SystemPlan


def with_prompts(systems: Mapping[str, SystemPlan], section: FairRag) -> dict[str, SystemPlan]:
    """The systems as they stand, in their own order, with what their answers are asked with."""
    return {
        name: system.model_copy(update={"draws": Draws(system=name, alpha=None, prompts=_prompts(system, section))})
        for name, system in systems.items()
    }


def rows(systems: Mapping[str, SystemPlan], section: FairRag) -> dict[str, SystemPlan]:
    """The rows by their names, system by system; then the oracle, once for each generator.

    `systems` are those of `with_prompts`.
    """
    found: dict[str, SystemPlan] = {}
    for name, system in systems.items():
        for alpha in ((None,) if section.deterministic else ()) + section.alphas:
            found[row_name(name, alpha)] = _drawn(system, alpha)
    if section.oracle is not None:
        first: dict[str, str] = {}
        for name, system in systems.items():
            first.setdefault(generator(system), name)
        for number, name in enumerate(first.values()):
            oracle = row_name("oracle" if not number else f"oracle for {name}", section.oracle)
            found[oracle] = _drawn(systems[name], section.oracle, oracle=True)
    return found


def _drawn(system: SystemPlan, alpha: float | None, oracle: bool = False) -> SystemPlan:
    assert system.draws  # with_prompts
    return system.model_copy(update={"draws": system.draws.model_copy(update={"alpha": alpha, "oracle": oracle})})


def _prompts(system: SystemPlan, section: FairRag) -> tuple[str, ...]:
    """The templates that answers, their filter and their attribution are asked with."""
    settings = system.settings
    if section.lamp:
        return (parse_task(section.lamp.task).prompt, *settings.attribute.templates)
    return (*settings.filter.templates, *settings.generate.templates, *settings.attribute.templates)


def row_name(system: str, alpha: float | None) -> str:
    """What a row is called.

    >>> row_name("BM25", None), row_name("BM25", 2.0)
    ('BM25', 'BM25 α=2')
    """
    return system if alpha is None else f"{system} α={alpha:g}"


def generator(system: SystemPlan) -> str:
    """What tells one generator from another: who answers, and how it is asked."""
    settings = system.settings
    return f"{settings.generate.model_dump_json()} {settings.model.model_dump_json()} {settings.prompts}"


def rivals(name: str, systems: Mapping[str, SystemPlan], section: FairRag) -> Iterator[str]:
    """The rows among which the highest utility is sought that `name` is measured by; itself is one of them."""
    own = systems[name]
    for other, system in systems.items():
        assert own.draws  # as every row of such an experiment has
        assert system.draws
        alike = generator(system) == generator(own)
        same = system.draws.system == own.draws.system and system.draws.alpha is not None
        if alike and (section.highest == "all" or other == name or system.draws.oracle or same):
            yield other
