"""Answer generation: the context, the generators, and citations."""

from fairagent.generate.citations import CitationReader
from fairagent.generate.context import arrange, fit
from fairagent.generate.extractive import ExtractiveGenerator
from fairagent.generate.generator import Generator, OnText

__all__ = ["CitationReader", "ExtractiveGenerator", "Generator", "OnText", "arrange", "fit"]
