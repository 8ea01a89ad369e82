"""Prompt templates: loaded from files, checked as a whole, rendered in a sandbox, known by their hash."""

from fairagent.llm.prompts.folder import Prompts, folder_of, shipped_folder, source_beside, variants
from fairagent.llm.prompts.template import Prompt

__all__ = ["Prompt", "Prompts", "folder_of", "shipped_folder", "source_beside", "variants"]
