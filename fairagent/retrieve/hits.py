"""What a Lucene search has found, as arrays: two calls into Java whatever the number of hits."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.retrieve.handles import OBJECTS, as_function, bound, field, method, piped, static, typed
from fairagent.types import FloatArray

SEARCH, STREAMS = "org.apache.lucene.search.", "java.util.stream."


def numbers_and_scores(found: Any) -> tuple[NDArray[np.intp], FloatArray]:
    """The document numbers and the scores, exactly Lucene's 32-bit floats, of a TopDocs; inside `using_java()`."""
    scores = _column("score", "float", "Double", "[D").apply(found)
    return np.array(_column("doc", "int", "Int", "[I").apply(found), dtype=np.intp), np.array(scores, dtype=np.float64)


@cache
def _column(name: str, kind: str, stream: str, array: str) -> Any:
    """The function from a TopDocs to the array of a field of its hits: a stream of them, mapped and collected."""
    top, hits, taker = f"{SEARCH}TopDocs", f"[L{SEARCH}ScoreDoc;", f"java.util.function.To{stream}Function"
    take = as_function(taker, field(f"{SEARCH}ScoreDoc", name, kind))
    to_numbers = method(f"{STREAMS}Stream", f"mapTo{stream}", f"{STREAMS}{stream}Stream", taker)
    chain = piped(
        typed(field(top, "scoreDocs", hits), OBJECTS, top),
        static("java.util.Arrays", "stream", f"{STREAMS}Stream", OBJECTS),
        bound(to_numbers, take, at=1),
        method(f"{STREAMS}{stream}Stream", "toArray", array),
    )
    return as_function("java.util.function.Function", chain)
