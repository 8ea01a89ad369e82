"""The one door to language models. Nothing here loads a client before `fairagent.llm.openai` makes one."""

from fairagent.llm.reply import Reply
from fairagent.llm.request import Message, Model, ModelReply, ModelRequest, StreamingModel, ask, read_reply, tell

__all__ = [
    "Message",
    "Model",
    "ModelReply",
    "ModelRequest",
    "Reply",
    "StreamingModel",
    "ask",
    "read_reply",
    "tell",
]
