"""Prompt templates: loaded from files, checked as a whole, rendered in a sandbox, known by their hash."""

from fairagent.prompts.folder import Prompts
from fairagent.prompts.prompt import Prompt

__all__ = ["Prompt", "Prompts"]
