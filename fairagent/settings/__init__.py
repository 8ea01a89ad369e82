"""Settings: one checked tree, merged from defaults, a profile, a file, the environment and the call.

A part (engine, loop, re-ranker ...) is a section with a `kind`, whose class is imported when its kind is named; those
of other packages come in by entry points. Unknown keys and values are errors that name the nearest valid one. Nothing
here knows what a part does: `parts` has the protocol, `tree` the merging, `plugins` the entry points.
"""

from fairagent.settings.models import (
    BudgetSettings,
    ModelSettings,
    Price,
    SelfDebiasSettings,
)
from fairagent.settings.options import OptionValues, SearchOptions
from fairagent.settings.parts import Part, Without
from fairagent.settings.section import Label, Section, merge, nested, parse_yaml, read_yaml, validate
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
    "Label",
    "ModelSettings",
    "OptionValues",
    "Part",
    "Price",
    "Sampling",
    "SearchOptions",
    "Section",
    "SelfDebiasSettings",
    "Settings",
    "Target",
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
