"""Settings: one checked tree, merged from defaults, a profile, a file, the environment and the call.

A part (engine, loop, re-ranker ...) is a section with a `kind`, whose class is imported when its kind is named; those
of other packages come in by entry points. Unknown keys and values are errors that name the nearest valid one. Nothing
here knows what a part does: `parts` has the protocol, `tree` the merging, `plugins` the entry points.
"""

from fairagent.settings.parts import Part, Without
from fairagent.settings.section import Label, Section, merge, parse_yaml, read_yaml, validate
from fairagent.settings.tree import (
    BudgetSettings,
    ModelSettings,
    OptionValues,
    Price,
    SearchOptions,
    SelfDebiasSettings,
    Settings,
    Target,
    Unknown,
    from_environment,
    lay,
    load_settings,
)

__all__ = [
    "BudgetSettings", "Label", "ModelSettings", "OptionValues", "Part", "Price", "SearchOptions", "Section",
    "SelfDebiasSettings", "Settings", "Target", "Unknown", "Without", "from_environment", "lay", "load_settings",
    "merge", "parse_yaml", "read_yaml", "validate",
]  # fmt: skip
