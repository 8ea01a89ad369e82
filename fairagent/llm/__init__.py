"""Language models: every call goes through `models`, with one cache, one budget and one layer of retries.

`openai` speaks with any OpenAI-compatible server over `transport`, which bounds time and size of everything it reads.
Replies are validated (`reply`), corrected at most twice (`asking`), and recorded (`exchange`). Importing this room
loads no client library.
"""

from fairagent.llm.asking import ask
from fairagent.llm.reply import Reply
from fairagent.llm.request import Message, Model, ModelReply, ModelRequest, StreamingModel, read_reply, stream

__all__ = ["Message", "Model", "ModelReply", "ModelRequest", "Reply", "StreamingModel", "ask", "read_reply", "stream"]
