"""A model in a GGUF file on this machine: what the file holds, its server, and the small model that is a package."""

from fairagent.llm.local.header import GgufHeader, read_header
from fairagent.llm.local.package import install_small_model, small_model
from fairagent.llm.local.server import LocalServer, Queue

__all__ = ["GgufHeader", "LocalServer", "Queue", "install_small_model", "read_header", "small_model"]
