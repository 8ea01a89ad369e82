"""The one door to language models. Nothing here loads a client before `fairagent.llm.openai` makes one."""

from fairagent.llm.base import Message, Model, ModelReply, ModelRequest, StreamingModel, ask, read_reply, tell
from fairagent.llm.reply import Reply

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
