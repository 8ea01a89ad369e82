"""The settings that a page offers: those that matter most with words for people, all others under their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairagent.settings import Settings
from fairagent.settings.section import meanings
from fairagent.storage.readers import parse_json
from fairagent.studio.calls import Choices

WORDS: dict[str, dict[str, Any]] = parse_json((Path(__file__).parent / "pages" / "words.json").read_text("utf-8"))
"""Of a setting: its `label`, and `words` for its values."""


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
        about = {"name": name, "label": "", "words": {}, **WORDS.get(name, {})}
        rows.append({**about, "meaning": " ".join(meaning[name].split()), "value": plain, **choices})
    return rows
