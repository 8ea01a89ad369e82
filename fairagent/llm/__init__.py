"""Access to language models. Importing it loads no client library."""

from fairagent.llm.asking import ask
from fairagent.llm.reply import Reply
from fairagent.llm.request import Message, Model, ModelReply, ModelRequest, StreamingModel, read_reply, tell

__all__ = ["Message", "Model", "ModelReply", "ModelRequest", "Reply", "StreamingModel", "ask", "read_reply", "tell"]
