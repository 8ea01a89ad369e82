"""The settings that a page offers: those that matter most with words for people, all others under their names."""

from __future__ import annotations

from typing import Any

from fairagent.extend import Settings, meanings
from fairagent.studio.calls import Choices

WORDS: dict[str, tuple[str, dict[str, str]]] = {
    "target": (
        "What each group should get",
        {
            "population": "its share of the world",
            "uniform": "the same as every other group",
            "corpus": "its share of the collection",
            "estimated": "its share of what the engine finds",
            "trec-estimated": "between what the engine finds and the world",
            "qrels": "its share of what was judged relevant (oracle)",
            "trec": "between what was judged relevant and the world (oracle)",
        },
    ),
    "dimensions": ("Fair in", {}),
    "loop": (
        "Search again for what lacks",
        {
            "widen": "yes, for candidates of the groups that lack them",
            "fair-qr": "yes, with keywords for one group at a time",
            "none": "no, only order what was found",
        },
    ),
    "engine": (
        "What finds the documents",
        {
            "auto": "the best that this index has",
            "bm25": "words (BM25)",
            "rm3": "words, and those of the first documents (RM3)",
            "dense": "meaning (vectors)",
            "fused": "words and meaning together",
        },
    ),
    "profile": (
        "How it works",
        {
            "offline": "without a language model",
            "agent": "a language model decides on the steps",
            "engine": "the engine alone, groups are not looked at",
            "fair-qr": "a language model adds keywords for the group that lacks most",
            "fair-filter": "a language model filters what an answer is made from",
            "debias-rag": "a language model, debiased for an answer",
        },
    ),
}
"""Of a setting: what it is called, and what its values are."""


def controls(settings: Settings) -> list[dict[str, Any]]:
    """Each setting of `Choices` for a page: its meaning, what may be chosen, and what it is in `settings`.

    Those of `WORDS`, which come first, have a `label` and `words` for their values.
    """
    schema, meaning = Choices.model_json_schema()["properties"], meanings(Settings)
    rows = []
    for name in (*WORDS, *(name for name in Choices.model_fields if name not in WORDS)):
        value, form = getattr(settings, name), schema[name]["anyOf"][0]
        # A part by its kind, what is not set as "".
        plain = "" if value is None else value if isinstance(value, str | int | tuple) else str(value)
        choices = {key: form[key] for key in ("enum", "type", "minimum", "maximum") if key in form}
        label, words = WORDS.get(name, ("", {}))
        about = {"name": name, "label": label, "words": words, "meaning": " ".join(meaning[name].split())}
        rows.append({**about, "value": plain, **choices})
    return rows
