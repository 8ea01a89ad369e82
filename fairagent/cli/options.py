"""Options that several commands share, and the settings that they add up to."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fairagent.clean import in_one_line
from fairagent.errors import UsageError
from fairagent.settings import Settings, load_settings, merge, nested, parse_yaml
from fairagent.settings.parts import SLOTS, described

DEFAULT_SETTINGS = Path("fairagent.yaml")
LOGGERS = ("fairagent", "openai")
"""Those that tell of requests to models."""

CollectionFile = Annotated[
    Path | None, typer.Option("--collection", "-c", metavar="FILE", help="The collection's settings file.")
]
IndexFolder = Annotated[
    Path | None, typer.Option("--index", metavar="DIR", help="The index's folder. (default: indexes/NAME)")
]
SettingsFile = Annotated[
    Path | None,
    typer.Option("--settings", metavar="FILE", help=f"A settings file. (default: {DEFAULT_SETTINGS}, if it is there)"),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting, e.g. rerank.kind=fused; may be repeated."),
]
LogPrompts = Annotated[
    bool, typer.Option("--log-prompts", help="Log to standard error, including the prompts sent (never the key).")
]
TranscriptFile = Annotated[
    Path | None,
    typer.Option(
        "--transcript",
        metavar="FILE",
        help="Add every call of a language model to this file: prompt, reply, tokens, attempts (never the key).",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def settings_file(given: Path | None) -> Path | None:
    """The settings file to read: the one given, else ./fairagent.yaml where it exists."""
    return given or (DEFAULT_SETTINGS if DEFAULT_SETTINGS.is_file() else None)


def overrides(assignments: Sequence[str] | None, **options: Any) -> dict[str, Any]:
    """What the call sets: each `--set key.sub=value`, over these the options that were given (are not None).

    Values are YAML. Raises UsageError for an assignment that is none.

    >>> overrides(["rerank.kind=fused", "dimensions=[gender]"], n=10, index=None)
    {'rerank': {'kind': 'fused'}, 'dimensions': ['gender'], 'n': 10}
    """
    layers: list[dict[str, Any]] = []
    for assignment in assignments or ():
        key, equals, text = assignment.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set {assignment}: expected KEY=VALUE, e.g. --set rerank.kind=fused")
        value = nested(key.strip().split("."), parse_yaml(text, f"--set {key}"), f"--set {key}")
        # A part in its short form, so that more can be said of it: engine=rm3, engine.terms=20.
        layers += [{name: described(name, part) if name in SLOTS else part} for name, part in value.items()]
    return merge(*layers, {name: value for name, value in options.items() if value is not None})


def target_of(text: str | None) -> Any:
    """What `--target` sets, a target in its long form; None where it is not given. Raises SettingsError for no YAML.

    >>> target_of("uniform"), target_of("{gender: {female: 0.5, male: 0.5}}")
    ({'kind': 'uniform'}, {'gender': {'female': 0.5, 'male': 0.5}})
    """
    return None if text is None else described("target", parse_yaml(text, "--target"))


def logged(wanted: bool) -> dict[str, bool] | None:
    """What `--log-prompts` sets of `model`, with the logs turned on; None where it is not given."""
    if not wanted:
        return None
    handler = logging.StreamHandler()
    handler.addFilter(in_one_line)
    logging.basicConfig(format="%(asctime)s %(name)s: %(message)s", handlers=[handler])
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.DEBUG)
    return {"log_prompts": True}


def settings_of(file: Path | None, assignments: Sequence[str] | None, **options: Any) -> Settings:
    """The settings of a call: options over --set over FAIRAGENT_... variables over the file over the defaults.

    Raises SettingsError naming every fault.
    """
    given = {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}
    return load_settings(settings_file(file), overrides(assignments, **given))
