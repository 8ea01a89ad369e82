"""The API page: each call of the schema in words, with an example request for the open collection that can be sent.

A call that has no example of its own, such as one of another package, gets one from its schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from fairagent.extend import FairAgentError, PlainRecord, UsageError
from fairagent.studio.calls import Choices, ListRequest
from fairagent.studio.contents import example_queries
from fairagent.studio.desk import Desk

Schema = Mapping[str, Any]
JSON = "application/json"
STREAM = "text/event-stream"
BY_TYPE: Mapping[str, Any] = {"integer": 1, "number": 1, "boolean": False, "array": [], "object": {}}
"""What is sent for what a call needs and nobody has named an example of; of a text, the query."""


@dataclass(frozen=True, slots=True)
class CallExample:
    """An example of a call: its `values` (UsageError, saying why, where there can be none), and its `effect`.

    Values are keys of the path, the query or the body, wherever the schema has them. What has an effect ("asks a
    model", "writes a file") is sent by the page only when one presses its button; "" is none.
    """

    values: Callable[[], Mapping[str, Any]]
    effect: Callable[[], str] = lambda: ""


def example_query(desk: Desk) -> str:
    """A query that finds something in the collection; UsageError where none is known."""
    for one in example_queries(desk.collection, 1):
        return str(one["query"])
    raise UsageError("the collection has no topic, and its documents cannot be read for a query")


def search_examples(desk: Desk) -> dict[str, CallExample]:
    """Examples of the calls that search, and of those about what they find."""

    def query(**more: Any) -> dict[str, Any]:
        return {"query": example_query(desk), **more}

    def ids() -> list[str]:
        request = ListRequest(query=example_query(desk), settings=Choices(profile="engine", n=5))
        hits = desk.search(request)["hits"]
        if not hits:
            raise UsageError(f"the engine finds nothing for {request.query!r}, so that there is no document to name")
        return [hit["id"] for hit in hits]

    def asking(command: str) -> Callable[[], str]:
        return lambda: "asks a model" if desk.asks_model(Choices(), command) else ""

    return {
        "POST /api/search": CallExample(lambda: query(settings={"n": 5}), asking("search")),
        "POST /api/reorder": CallExample(lambda: query(n=5, fairness=0.5), asking("search")),
        "POST /api/answer": CallExample(lambda: query(settings={"n": 5}), asking("answer")),
        "POST /api/exposure": CallExample(lambda: query(ids=ids())),
        "GET /api/document": CallExample(lambda: {"id": ids()[0]}),
        "POST /api/recipes": CallExample(lambda: query(settings={"n": 5, "loop": "none"})),
    }


def calls_of(schema: Schema) -> list[PlainRecord]:
    """Every call of an OpenAPI schema in words: what the page shows of it without asking anything."""
    return [
        {
            "method": method.upper(),
            "path": path,
            "summary": call["summary"],
            "about": call.get("description", ""),
            "fields": [*_parameters(call, schema), *_keys(call, schema)],
        }
        for path, method, call in _calls(schema)
    ]


def examples_of(schema: Schema, examples: Mapping[str, CallExample], query: Callable[[], str]) -> list[PlainRecord]:
    """A request for every call: address and body, or why there is none (`lacking`); `query` finds something."""
    return [_request(path, method, call, schema, examples, query) for path, method, call in _calls(schema)]


def _request(
    path: str,
    method: str,
    call: Schema,
    schema: Schema,
    examples: Mapping[str, CallExample],
    query: Callable[[], str],
) -> PlainRecord:
    own = examples.get(f"{method.upper()} {path}")
    record: PlainRecord = {"method": method.upper(), "path": path, "address": path, "body": None, "lacking": ""}
    record["streams"] = STREAM in call.get("responses", {}).get("200", {}).get("content", {})
    try:
        # What another package's call does besides is not known, unless it only reads.
        record["effect"] = own.effect() if own else "" if method == "get" else "may change something"
        given = dict(own.values()) if own else _needed(call, schema, query)
    except FairAgentError as error:
        return record | {"effect": "", "lacking": str(error)}
    in_address = {}
    for parameter in call.get("parameters", []):
        name = parameter["name"]
        if name in given and parameter["in"] == "path":
            record["address"] = record["address"].replace(f"{{{name}}}", quote(str(given.pop(name)), safe=""))
        elif name in given and parameter["in"] == "query":
            in_address[name] = given.pop(name)
    record["address"] += f"?{urlencode(in_address)}" if in_address else ""
    if "requestBody" in call:
        record["body"] = given
    elif given:
        raise UsageError(f"the example of {method.upper()} {path} has keys that the call has not: {', '.join(given)}")
    return record


def _needed(call: Schema, schema: Schema, query: Callable[[], str]) -> dict[str, Any]:
    """A value for each parameter and key that a call needs, by its schema."""
    needed = {one["name"]: one["schema"] for one in call.get("parameters", []) if one.get("required")}
    if model := _model(call, schema):
        needed |= {name: model["properties"][name] for name in model.get("required", [])}
    return {name: _value(_resolved(form, schema), query) for name, form in needed.items()}


def _value(form: Schema, query: Callable[[], str]) -> Any:
    for known in (form.get("examples"), form.get("enum")):
        if known:
            return known[0]
    if "default" in form:
        return form["default"]
    kind = form.get("type", "string")
    return BY_TYPE[kind] if kind in BY_TYPE else query()


# --- a schema in words -----------------------------------------------------------------------------------------------


def _calls(schema: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, methods in schema["paths"].items():
        for method, call in methods.items():
            yield path, method, call


def _resolved(form: Schema, schema: Schema) -> Schema:
    if "$ref" not in form:
        return form
    resolved: Schema = schema["components"]["schemas"][form["$ref"].rpartition("/")[2]]
    return resolved


def _model(call: Schema, schema: Schema) -> Schema | None:
    body = call.get("requestBody", {}).get("content", {}).get(JSON, {}).get("schema")
    return _resolved(body, schema) if body else None


def _parameters(call: Schema, schema: Schema) -> Iterator[PlainRecord]:
    for one in call.get("parameters", []):
        yield _field(one["name"], {**one["schema"], **one}, bool(one.get("required")), one["in"], schema)


def _keys(call: Schema, schema: Schema) -> Iterator[PlainRecord]:
    model = _model(call, schema)
    for name, form in (model or {}).get("properties", {}).items():
        within = _resolved(form, schema)
        yield _field(name, form, name in (model or {}).get("required", []), "body", schema)
        for inner, of_inner in within.get("properties", {}).items():
            yield _field(f"{name}.{inner}", of_inner, inner in within.get("required", []), "body", schema)


def _field(name: str, form: Schema, required: bool, where: str, schema: Schema) -> PlainRecord:
    resolved = _resolved(form, schema)
    about = form.get("description") or resolved.get("description") or ""
    return {
        "name": name,
        "where": where,
        "required": required,
        "values": in_words(form, schema),
        "about": " ".join(about.split()),
    }


def in_words(form: Schema, schema: Schema) -> str:
    """What values a part of a schema takes.

    >>> in_words({"anyOf": [{"type": "integer", "minimum": 1, "maximum": 100}, {"type": "null"}]}, {})
    'a whole number, 1 to 100'
    >>> in_words({"type": "array", "maxItems": 20, "items": {"type": "string", "maxLength": 200}}, {})
    'a list of at most 20: a text of at most 200 characters'
    """
    form = _resolved(form, schema)
    if "anyOf" in form:
        forms = [one for one in form["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(in_words(one, schema) for one in forms))
    if "const" in form:
        return str(form["const"])
    if "enum" in form:
        return f"one of {', '.join(map(str, form['enum']))}"
    kind = form.get("type", "")
    least, most = form.get("minimum"), form.get("maximum")
    limits = f", {least} to {most}" if None not in (least, most) else ""
    limits = limits or (f", at least {least}" if least is not None else f", at most {most}" if most is not None else "")
    if kind == "string":
        return "a text" + (f" of at most {form['maxLength']:,} characters" if "maxLength" in form else "")
    if kind == "array":
        several = f"a list of at most {form['maxItems']}" if "maxItems" in form else "a list"
        return f"{several}: {in_words(form.get('items', {}), schema)}"
    words = {"integer": "a whole number", "number": "a number", "boolean": "true or false", "object": "an object"}
    return words.get(kind, "any value") + limits
