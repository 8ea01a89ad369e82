"""Making queries from text or topics, and adding keywords to a query."""

from collections.abc import Sequence

from fairagent.types import Query, Term, Topic


def as_query(query: str | Query | Topic) -> Query:
    """A text, or a topic of a collection, as a query."""
    if isinstance(query, Topic):
        return Query(query.query, query.id)
    return Query(query) if isinstance(query, str) else query


def with_terms(query: Query, terms: Sequence[Term]) -> Query:
    """`query` with more keywords; a keyword that it has already gets the sum of both weights.

    >>> with_terms(Query("lawyers", terms=(Term("court", 0.5),)), [Term("court", 0.5), Term("she")]).terms
    (Term(text='court', weight=1.0), Term(text='she', weight=1.0))
    """
    merged: dict[str, Term] = {}
    for term in (*query.terms, *terms):
        known = merged.get(term.text)
        merged[term.text] = Term(term.text, known.weight + term.weight) if known else term
    return Query(query.text, query.id, tuple(merged.values()))
