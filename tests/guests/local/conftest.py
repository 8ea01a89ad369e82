"""A stand-in for the package xllamacpp, which opens a port and counts as it is told."""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


class Library(ModuleType):
    """What LocalServer needs of it. `log` is what the library says when it does not start, `counts` its metrics."""

    def __init__(self) -> None:
        super().__init__("xllamacpp")
        self.__spec__ = ModuleSpec("xllamacpp", None)
        self.started: list[Any] = []
        self.log = ""
        self.counts = [(0, 0)]

    def CommonParams(self) -> SimpleNamespace:
        return SimpleNamespace(model=SimpleNamespace(), cpuparams=SimpleNamespace())

    def Server(self, wanted: SimpleNamespace) -> SimpleNamespace:
        if self.log:
            os.write(2, self.log.encode())
            raise RuntimeError("Failed to init server, please check the input params.")
        self.started.append(wanted)
        return SimpleNamespace(listening_address="http://127.0.0.1:4711", handle_metrics=self.metrics)

    def metrics(self) -> str:
        processing, deferred = self.counts[0] if len(self.counts) == 1 else self.counts.pop(0)
        return (
            f"# HELP llamacpp:requests_processing Number\nllamacpp:requests_processing {processing}\n"
            f"llamacpp:requests_deferred {deferred}\n"
        )


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    library = Library()
    monkeypatch.setitem(sys.modules, "xllamacpp", library)
    return library
