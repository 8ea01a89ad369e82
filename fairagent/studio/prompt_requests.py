"""What may be asked of the Prompts page, with its limits."""

from typing import Annotated

from pydantic import Field

from fairagent.prompts.source import LARGEST
from fairagent.studio.calls import Checked, Query, Topic

MOST_TOPICS = 10
"""Topics on which a template is tried at once: each asks the model twice."""
MOST_DOCUMENTS = 20
"""Documents that a template is filled with."""

Id = Annotated[str, Field(max_length=100, description="A shipped template's id.")]
Text = Annotated[str, Field(max_length=LARGEST, description="The template's text, head included.")]


class Draft(Checked):
    """A template's text that is in no file yet."""

    id: Id
    template: Text


class Filled(Draft):
    """A draft, and what it is filled with: what a query or a topic finds, examples without one."""

    query: Query = ""
    topic: Topic = ""
    group: Annotated[str, Field(max_length=500, description="The group to refine for; that which lacks most.")] = ""
    documents: Annotated[int, Field(ge=1, le=MOST_DOCUMENTS)] = 3


class Tried(Filled):
    """A draft that is tried beside the shipped template: on a query, a topic, or several topics."""

    topics: Annotated[tuple[Topic, ...], Field(max_length=MOST_TOPICS)] = ()


class Saved(Draft):
    """A draft for the user's folder, whose file had the SHA-256 `was` when it was read ("": there was none)."""

    was: Annotated[str, Field(max_length=64)] = ""
