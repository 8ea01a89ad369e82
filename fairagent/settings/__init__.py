"""Settings: the settings tree, its layers, and the parts of a pipeline."""

from fairagent.settings.models import (
    BudgetSettings,
    ModelSettings,
    Price,
    SelfDebiasSettings,
    TransformersSettings,
)
from fairagent.settings.parts import Part, Without
from fairagent.settings.section import Section, merge, nested, parse_yaml, read_yaml, validate
from fairagent.settings.tree import (
    ENV_PREFIX,
    ContextSettings,
    Expansion,
    Sampling,
    Settings,
    Target,
    Unknown,
    default_profile,
    from_environment,
    lay,
    load_settings,
)

__all__ = [
    "ENV_PREFIX",
    "BudgetSettings",
    "ContextSettings",
    "Expansion",
    "ModelSettings",
    "Part",
    "Price",
    "Sampling",
    "Section",
    "SelfDebiasSettings",
    "Settings",
    "Target",
    "TransformersSettings",
    "Unknown",
    "Without",
    "default_profile",
    "from_environment",
    "lay",
    "load_settings",
    "merge",
    "nested",
    "parse_yaml",
    "read_yaml",
    "validate",
]
