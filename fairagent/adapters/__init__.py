"""Adapters, one module each: LlamaIndex, PyTerrier, ir-measures; `hits` is for the hits of any engine.

A host is imported by its own module here and by nothing else, so it need not be installed until it is used.
"""
