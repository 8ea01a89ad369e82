"""Settings: which layer wins, and that whatever is wrong is said at once and where; parts are in test_parts.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import Field, TypeAdapter

from fairagent.collection.targets import CorpusTarget, GivenTarget, UniformTarget
from fairagent.errors import SettingsError
from fairagent.search.pipeline import resolve
from fairagent.search.refine import FeedbackConfig
from fairagent.search.rerank.exposure import ExposureConfig
from fairagent.search.rerank.relevance import FusedRerankConfig
from fairagent.search.rerank.similarity import MMRConfig
from fairagent.settings import Section, Settings, from_environment, load_settings
from fairagent.settings.section import meanings

pytestmark = pytest.mark.usefixtures("no_variables")


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def file(text: str | bytes) -> Path:
        path = tmp_path / "settings.yaml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return file


def fault(*args: Any, **kwargs: Any) -> str:
    with pytest.raises(SettingsError) as raised:
        load_settings(*args, **kwargs)
    return str(raised.value)


# --- which layer wins -------------------------------------------------------------------------------------------


def test_call_over_environment_over_file_over_default(file: Any) -> None:
    path = file("n: 1\ndepth: 10\niterations: 1\nrefine: {documents: 1, terms: 1, weight: 1}\n")
    given = {"N": "2", "DEPTH": "20", "REFINE__DOCUMENTS": "2", "REFINE__TERMS": "2"}
    environ = {f"FAIRAGENT_{name}": value for name, value in given.items()}
    chosen = load_settings(path, {"n": 3, "refine": {"documents": 3}}, environ)
    assert (chosen.n, chosen.depth, chosen.iterations) == (3, 20, 1)
    assert chosen.refine == FeedbackConfig(documents=3, terms=2, weight=1)
    assert chosen.threshold == Settings().threshold
    assert chosen.rerank == Settings().rerank


def test_the_defaults() -> None:
    chosen = Settings()
    assert [chosen.engine.kind, chosen.loop.kind, str(chosen.rerank)] == ["auto", "widen", "graph, exposure"]
    assert chosen.expansion.documents == 0
    assert chosen.rerank.inner[1] == ExposureConfig()


def test_targets_are_set_dimension_by_dimension_and_each_as_a_whole(file: Any) -> None:
    path = file("target: {gender: {female: 0.5, male: 0.5}, region: uniform}\n")
    chosen = load_settings(path, {"target": {"gender": {"female": 0.7, "nonbinary": 0.3}}}, {})
    # Half of the file's shares beside the call's would add up to 1.5.
    assert chosen.target == {"gender": GivenTarget(shares={"female": 0.7, "nonbinary": 0.3}), "region": UniformTarget()}
    assert load_settings(path, {"target": "corpus"}, {}).target == CorpusTarget()
    other = load_settings(file("target: corpus"), {"target": {"gender": "uniform"}}, {})
    assert other.target == {"gender": UniformTarget()}
    one = load_settings(path, {"target": {"kind": "given", "shares": {"a": 1}}}, {})
    assert one.target == GivenTarget(shares={"a": 1})


def test_resolving_a_value_lays_the_call_over_it_section_by_section(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRAGENT_N", "7")
    given = Settings(n=5, depth=50, rerank=ExposureConfig(fairness=2.0))
    chosen = resolve(given, {"depth": 60, "rerank": {"unlabeled": 0.5}})
    assert (chosen.n, chosen.depth) == (5, 60)  # what was made by hand is not changed by the environment
    assert chosen.rerank == ExposureConfig(fairness=2.0, unlabeled=0.5)
    assert resolve(given, {}) == given
    assert resolve(given, {"rerank": "mmr"}).rerank == MMRConfig()
    shares, others = {"gender": {"female": 0.5, "male": 0.5}}, {"gender": {"female": 0.7, "nonbinary": 0.3}}
    assert resolve(Settings(target=shares), {"target": others}) == Settings(target=others)
    assert resolve(None, {"depth": 60}) == Settings(profile="offline", n=7, depth=60)


@pytest.mark.parametrize("rerank", [MMRConfig(), MMRConfig(relevance=0.3), "mmr", ["mmr", FusedRerankConfig()], "none"])
def test_a_part_that_was_given_as_a_value_keeps_its_kind(rerank: Any) -> None:
    given = Settings(rerank=rerank)
    assert resolve(given, {"n": 5}).rerank == given.rerank
    # What runs write down, and what is read from it.
    assert Settings.model_validate(given.model_dump(exclude_unset=True, mode="json")) == given
    assert Settings.model_validate(given.model_dump(mode="json")) == given


# --- the environment --------------------------------------------------------------------------------------------


def test_variables_become_nested_keys_and_values_are_yaml() -> None:
    environ = {
        "FAIRAGENT_DIMENSIONS": "[gender, region]",
        "FAIRAGENT_TARGET__GENDER__FEMALE": "0.5",
        "FAIRAGENT_TARGET__GENDER__MALE": "0.5",
        "FAIRAGENT_COLLECTION": "c.yaml",
        "PATH": "/bin",
        "FAIRAGENTX": "1",
    }
    assert from_environment(environ) == {
        "dimensions": ["gender", "region"],
        "target": {"gender": {"female": 0.5, "male": 0.5}},
        "collection": "c.yaml",
    }
    assert load_settings(environ=environ).dimensions == ("gender", "region")


def test_a_section_and_its_parts_as_variables() -> None:
    for given, expected in (
        ({"": "{kind: fused, refined: 0.2}", "__REFINED": "0.3"}, FusedRerankConfig(refined=0.3)),
        ({"": "mmr"}, MMRConfig()),
        ({"": "mmr", "__RELEVANCE": "0.1"}, MMRConfig(relevance=0.1)),
        ({"__KIND": "mmr", "__RELEVANCE": "0.1"}, MMRConfig(relevance=0.1)),
    ):
        environ = {f"FAIRAGENT_RERANK{name}": value for name, value in given.items()}
        assert load_settings(environ=environ).rerank == expected


# --- everything that is wrong, at once --------------------------------------------------------------------------


def test_every_fault_of_all_layers_at_once_with_the_nearest_name(file: Any) -> None:
    path = file("iteratons: 5\nrefine: {terms: 0}\n")
    overrides = {"n": 0, "rerank": {"kind": "mrr"}, "expansion": {"term": 1}}
    message = fault(path, overrides, {"FAIRAGENT_THRESHOLD": "-1"})
    assert message.splitlines()[0] == f"settings + {path} + FAIRAGENT_THRESHOLD: 6 errors"
    places = [line.split(":")[0].strip() for line in message.splitlines()[1:]]
    assert sorted(places) == ["expansion.term", "iteratons", "n", "refine.terms", "rerank", "threshold"]
    for name in ("iterations", "mmr", "terms"):
        assert f"did you mean '{name}'?" in message


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"threshold": float("nan")}, "threshold: expected a number"),
        ({"refine": {"weight": 0}}, "refine.weight: expected more than 0"),
        ({"rerank": {"kind": "fused", "refined": 1.1}}, "rerank.refined: expected 1 or less"),
        ({"divergence": "KL"}, "divergence: no value 'KL'; did you mean 'kl'? There are: js, kl, kl-reverse, tv"),
        ({1: 2}, "1: Keys should be strings"),
        ({"model": {"key": "secret"}}, "model.key: unknown key"),
    ],
)
def test_values_out_of_range(overrides: dict[Any, Any], words: str) -> None:
    assert words in fault(overrides=overrides, environ={})


# --- files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("n: [", r"not valid YAML: .*\(line [12], column"),
        ("[" * 500, "not valid YAML"),
        ("- n: 5", "expected 'key: value' lines, not list"),
        (b"n: \xff", "cannot be read"),
        ("!!python/object/apply:os.system [ls]", "not valid YAML"),
    ],
)
def test_a_file_that_cannot_be_read(file: Any, text: str | bytes, words: str) -> None:
    path = file(text)
    with pytest.raises(SettingsError, match=words) as raised:
        load_settings(path, environ={})
    assert str(raised.value).startswith(str(path))


# --- what settings become ---------------------------------------------------------------------------------------


def test_every_setting_says_what_it_is() -> None:
    def sections(section: type[Section]) -> Any:
        yield section
        for field in section.model_fields.values():
            if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
                yield from sections(field.annotation)

    # The fields of parts are looked at kind by kind in test_parts.py.
    for section in sections(Settings):
        assert section.__doc__
        for name, field in section.model_fields.items():
            nested = isinstance(field.annotation, type) and issubclass(field.annotation, Section)
            assert nested or meanings(section).get(name) or name == "kind", f"{section.__name__}.{name}"


class Tree(Section):
    """A tree."""

    shared: ClassVar[str] = "oak"
    """No key."""
    height: float = 1.0
    """How high
    it is."""
    kind: str = "oak"
    """Which one it is."""
    leaves: int = 0


class Palm(Tree):
    kind: str = "palm"
    leaves: int = Field(3, alias="fronds")
    """Those at its top."""


def test_what_a_key_means_is_the_text_below_it_in_the_source() -> None:
    assert meanings(Tree) == {"height": "How high\nit is.", "kind": "Which one it is."}
    # One that is defined again has its own text, or none.
    assert meanings(Palm) == {"height": "How high\nit is.", "leaves": "Those at its top."}
    properties = TypeAdapter(Palm).json_schema()["properties"]
    said = {name: key.get("description") for name, key in properties.items()}
    assert said == {"height": "How high\nit is.", "kind": None, "fronds": "Those at its top."}
