"""What answering an experiment's questions will ask of language models, at most.

Every document is taken to be as long as a model is ever shown one, and the judge to be asked about every answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fairagent.evaluate.answers.asking import PROMPT
from fairagent.evaluate.answers.grading import PROMPTS as JUDGES
from fairagent.evaluate.answers.questions import Question, Task
from fairagent.evaluate.plan import Plan, SystemPlan
from fairagent.filter.pages import LONGEST_TITLE
from fairagent.llm.request import estimate_tokens
from fairagent.prompts import Prompts
from fairagent.prompts.calls import LETTER, Calls, Case
from fairagent.settings import ModelSettings
from fairagent.stereotypes.choice import PROMPT as CHOOSING
from fairagent.stereotypes.files import READERS as CHOICES


def answering(system: SystemPlan, plan: Plan, of_id: Mapping[str, Question]) -> Iterator[Calls]:
    """The calls for the questions of `plan` under one system, filtering, asking and judging; none for rankings."""
    asked = plan.questions
    if asked is None:
        return
    questions = [of_id[id] for id in plan.topics]
    prompts, settings = Prompts(system.settings.prompts), system.settings
    case = Case(settings, prompts, [question.query for question in questions])
    if system.filters:
        yield from settings.filter.worst_case(case)
    yield from settings.debias.worst_case(case)
    if asked.task in CHOICES:
        if not system.local:
            yield _choosing(system, prompts, questions)
        return
    yield _calls(prompts, PROMPT, settings.model, questions, **_shown(system, asked.task))
    judge = asked.judge or settings.model
    longest = LETTER * 4 * prompts[PROMPT].longest_reply(settings.model.max_tokens)
    right = {"expected": LETTER * 4 * max(estimate_tokens(question.expected) for question in questions)}
    given = {"answer": longest, **(right if asked.task == "accuracy" else {})}
    yield _calls(prompts, JUDGES[asked.task], judge, questions, **given)


def _choosing(system: SystemPlan, prompts: Prompts, questions: list[Question]) -> Calls:
    """One call for each item; its sentences are shown with all of the context."""
    settings = system.settings
    context = None if system.without_context else LETTER * 4 * settings.context.tokens
    around = estimate_tokens(*(text for _, text in prompts.render(CHOOSING, sentences=[], context=context, opening="")))
    items = [question.item for question in questions if question.item]
    read = sum(around + estimate_tokens(*item.sentences, item.query) for item in items)
    written = len(items) * prompts[CHOOSING].longest_reply(settings.model.max_tokens)
    return Calls(settings.model, len(items), read, written)


def _shown(system: SystemPlan, task: Task) -> dict[str, object]:
    """What a question is asked with, besides its words."""
    if system.without_context:
        return {"documents": None, "brief": task == "accuracy"}
    context = system.settings.context
    text = LETTER * 4 * (context.tokens // context.documents)
    one = {"number": context.documents, "title": LETTER * LONGEST_TITLE, "text": text}
    return {
        "documents": [one] * context.documents,
        "brief": task == "accuracy",
    }


def _calls(
    prompts: Prompts, prompt: str, model: ModelSettings, questions: list[Question], **variables: object
) -> Calls:
    """One call for each question; `variables` are those of the template but for the query."""
    around = estimate_tokens(*(text for _, text in prompts.render(prompt, query="", **variables)))
    read = sum(around + estimate_tokens(question.query) for question in questions)
    return Calls(model, len(questions), read, len(questions) * prompts[prompt].longest_reply(model.max_tokens))
