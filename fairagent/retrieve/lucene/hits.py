"""What a Lucene search has found, as arrays: two calls into Java whatever the number of hits.

There is no compiler in the Java that runs here, and a call a hit takes longer than the search. So Java is handed a
chain of its own methods, put together once (java.lang.invoke): the hits, as a stream, each to its number or score, as
an array.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.retrieve.java import java_class
from fairagent.types import FloatArray


def numbers_and_scores(found: Any) -> tuple[NDArray[np.intp], FloatArray]:
    """The document numbers and the scores, exactly Lucene's 32-bit floats, of a TopDocs; inside `using_java()`."""
    scores = _column("score", "Float", "Double").apply(found)
    return np.array(_column("doc", "Integer", "Int").apply(found), dtype=np.intp), np.array(scores, dtype=np.float64)


@cache
def _column(field: str, kind: str, stream: str) -> Any:
    """The function from a TopDocs to the array of a `field` of its hits, Java's `kind` as an array of `stream`'s."""
    import jnius

    handles = java_class("java.lang.invoke.MethodHandles")
    types = java_class("java.lang.invoke.MethodType")
    proxies = java_class("java.lang.invoke.MethodHandleProxies")
    named = java_class("java.lang.Class").forName
    lookup = handles.publicLookup()

    hit, hits = named("org.apache.lucene.search.ScoreDoc"), named("[Lorg.apache.lucene.search.ScoreDoc;")
    found, objects = named("org.apache.lucene.search.TopDocs"), named("[Ljava.lang.Object;")
    streamed, numbers = named("java.util.stream.Stream"), named(f"java.util.stream.{stream}Stream")
    taker = named(f"java.util.function.To{stream}Function")

    value = lookup.findGetter(hit, field, java_class(f"java.lang.{kind}").TYPE)
    take = proxies.asInterfaceInstance(taker, value)
    of_found = lookup.findGetter(found, "scoreDocs", hits)
    to_stream = lookup.findStatic(named("java.util.Arrays"), "stream", types.methodType(streamed, objects))
    to_numbers = lookup.findVirtual(streamed, f"mapTo{stream}", types.methodType(numbers, taker))
    array = named("[D" if stream == "Double" else "[I")
    to_array = lookup.findVirtual(numbers, "toArray", types.methodType(array))

    steps = (to_stream, handles.insertArguments(to_numbers, 1, take), to_array)
    chain = of_found.asType(types.methodType(objects, found))
    for step in steps:
        chain = handles.filterReturnValue(chain, step)
    function = named("java.util.function.Function")
    return jnius.cast("java.util.function.Function", proxies.asInterfaceInstance(function, chain))
