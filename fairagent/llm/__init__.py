"""Language models: every call goes through `models`, with one cache, one budget and one layer of retries.

`openai` speaks with any OpenAI-compatible server over `transport`, which bounds time and size of everything it reads.
Replies are validated (`request`), corrected at most twice and recorded (`exchange`). Importing this room
loads no client library.
"""

from fairagent.llm.exchange import ask
from fairagent.llm.request import Message, Model, ModelReply, ModelRequest, Reply, StreamingModel, stream

__all__ = ["Message", "Model", "ModelReply", "ModelRequest", "Reply", "StreamingModel", "ask", "stream"]
