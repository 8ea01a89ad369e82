"""Prompt templates: loaded from files, checked as a whole, rendered in a sandbox, known by their hash."""

from fairagent.llm.prompts.folder import (
    PromptCheck,
    Prompts,
    check_prompts,
    folder_of,
    shipped_files,
    shipped_folder,
    source_relative_to,
    variants,
)
from fairagent.llm.prompts.template import Prompt

__all__ = [
    "Prompt",
    "PromptCheck",
    "Prompts",
    "check_prompts",
    "folder_of",
    "shipped_files",
    "shipped_folder",
    "source_relative_to",
    "variants",
]
