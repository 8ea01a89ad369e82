"""Reading FairFilter's replies as its authors' released code does, for comparison."""

from fairagent.filter.pages import Page, as_data, call_ids
from fairagent.filter.verdicts import TEMPERATURE
from fairagent.intake.json_text import parse_json
from fairagent.intake.malformed import Malformed
from fairagent.llm import Model
from fairagent.prompts import Prompts
from fairagent.types import Usage


def parse_verdict(reply: str) -> bool:
    """Whether the reply says that a document has passed; what cannot be read has not.

    The text from the first { to the next } is put in lower case and read as JSON; its key "pass" has to be true, or
    the text "true". So neither quotes of the wrong kind nor a brace before the key are forgiven.

    >>> parse_verdict('Sure! {"Pass": True}'), parse_verdict('{"Pass": "yes"}'), parse_verdict("True")
    (True, False, False)
    """
    begin = reply.find("{")
    end = reply.find("}", begin)
    if begin < 0 or end < 0:
        return False
    try:
        passed = parse_json(reply[begin : end + 1].lower()).get("pass")
    except Malformed:
        return False
    return passed is True or passed == "true"


def ask_as_authors(model: Model, prompts: Prompts, prompt: str, query: str, page: Page) -> tuple[bool, Usage]:
    """Whether the page passes, by a free text that `parse_verdict` reads, and what that took."""
    ids = call_ids(prompt, [query], [page])
    variables = {"query": query, "documents": as_data(ids, [page])}
    answer = model.complete(prompts.request(prompt, variables, TEMPERATURE))
    return parse_verdict(answer.text), answer.usage
