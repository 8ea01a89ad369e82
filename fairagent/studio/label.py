"""The Label page: the documents whose labels would help most, one click a label, written as `label --ask` does."""

from __future__ import annotations

import threading
from functools import partial
from typing import Annotated

from fastapi import FastAPI
from pydantic import Field
from starlette.responses import Response

from fairagent.extend import (
    LabelAsking,
    LabelGiven,
    LabelQuestion,
    PlainRecord,
    Site,
    UsageError,
    labels_file,
    listed,
)
from fairagent.studio.app import Studio, StudioPage
from fairagent.studio.calls import RequestModel
from fairagent.studio.desk import Desk
from fairagent.studio.lanes import FileChanged

COUNT, MOST = 20, 100
"""How many documents are asked about at once, and at most."""
SHOWN = 600
"""Characters of a document."""
WAITING = 50

Dimension = Annotated[str, Field(max_length=100, description="The dimension; the collection's first without it.")]


class LabelRequest(RequestModel):
    """A label for one document."""

    id: Annotated[str, Field(max_length=1000, description="The document's id.")]
    label: Annotated[str, Field(max_length=200, description="One of the labels, or a new one.")]
    dimension: Dimension = ""


class LabelPage(StudioPage):
    """The page and its calls."""

    links = (("/label", "Label"),)
    position = 3
    assets = ("label.js", "label.css")

    def add(self, app: FastAPI, studio: Studio) -> None:
        """Add the page and the calls."""
        desk = LabelDesk(studio.desk)
        # Who labels waits for no search, and learning from labels holds up none.
        lane = studio.lanes.beside(1, WAITING)

        @app.get("/api/label", summary="The documents whose labels would help most")
        async def questions(dimension: Dimension = "", count: int = COUNT) -> Response:
            return await studio.json(partial(desk.questions, dimension, count), lane)

        @app.post("/api/label", summary="Give a document its label")
        async def answer(body: LabelRequest) -> Response:
            """409 for a document that has a label already: given labels stay as they are."""
            return await studio.json(partial(desk.answer, body), lane)

        @app.get("/label", include_in_schema=False)
        async def page() -> Response:
            return studio.html("label.html")


class LabelDesk:
    """Asks for labels of the desk's collection, and writes them beside its file."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._lock = threading.Lock()

    def questions(self, dimension: str, count: int = COUNT) -> PlainRecord:
        """The labels that there are, and the documents to be asked about; raises what `LabelAsking` does."""
        if not 1 <= count <= MOST:
            raise UsageError(f"count: {count}, expected 1 to {MOST}")
        asking = self._asking(dimension)
        labels, wanted = asking.questions(count)
        return {
            "dimension": asking.dimension,
            "dimensions": list(asking.site.collection.groups.dimensions),
            "file": str(asking.file),
            "answers": asking.answers,
            "labels": labels,
            "documents": [_record(one) for one in wanted],
        }

    def answer(self, body: LabelRequest) -> PlainRecord:
        """Write one label; FileChanged for a document that has one already."""
        asking = self._asking(body.dimension)
        try:
            # One after the other: two answers about one document are not both written.
            with self._lock:
                return {"answers": asking.answer(body.id, body.label), "file": str(asking.file)}
        except LabelGiven as error:
            raise FileChanged(str(error)) from None

    def _asking(self, dimension: str) -> LabelAsking:
        site: Site = self._desk.site
        there = site.collection.groups.dimensions
        if not dimension and not there:
            raise UsageError("this collection has no groups yet; name the dimension that the labels are of")
        name = dimension or there[0]
        if not name.isprintable() or not name.strip():
            raise UsageError(f"dimension: expected a name; there are: {listed(there) or 'none yet'}")
        return LabelAsking(site, name, labels_file(site, name, "examples"))


def _record(one: LabelQuestion) -> PlainRecord:
    document = one.document
    return {"id": document.id, "title": document.title, "text": document.text[:SHOWN], "why": one.helpful.why}
