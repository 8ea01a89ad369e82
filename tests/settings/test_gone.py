"""What is gone is refused with what to use instead, wherever it is named."""

import pytest
from typer.testing import CliRunner

from fairagent.cli.app import app
from fairagent.errors import FairAgentError, SettingsError, UsageError
from fairagent.evaluate.kind import kind_class
from fairagent.measures.parse import parse_measure
from fairagent.settings import load_settings
from fairagent.settings.gone import GONE, gone


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(GONE, "phlogiston", "use oxygen")
    monkeypatch.setitem(GONE, "prompts phlogiston", "use oxygen")
    return "phlogiston is gone: use oxygen"


def test_a_part_a_key_of_settings_and_a_key_of_a_part(lost: str) -> None:
    for values in ({"rerank": "phlogiston"}, {"phlogiston": 1}, {"rerank": {"kind": "mmr", "phlogiston": 1}}):
        with pytest.raises(SettingsError) as caught:
            load_settings(overrides=values, environ={})
        assert lost in str(caught.value)
        assert "unknown" not in str(caught.value)


def test_a_measure_and_a_kind_of_experiment(lost: str) -> None:
    for act in (lambda: parse_measure("phlogiston@20"), lambda: kind_class("phlogiston")):
        with pytest.raises(FairAgentError) as caught:
            act()
        assert isinstance(caught.value, UsageError | SettingsError)
        assert str(caught.value).endswith(lost)


@pytest.mark.parametrize("words", [["phlogiston"], ["prompts", "phlogiston"]])
def test_a_command(lost: str, words: list[str]) -> None:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "is gone: use oxygen" in done.output
    assert "No such command" not in done.output


def test_nothing_that_is_there_is_said_to_be_gone() -> None:
    from fairagent.cli.app import COMMANDS
    from fairagent.evaluate.kind import kinds as experiments
    from fairagent.measures.parse import OWN
    from fairagent.settings.parts import SLOTS, kinds
    from fairagent.storage.packages import EXTRAS

    there = {*COMMANDS, *experiments(), *OWN, *EXTRAS, *(kind for slot in SLOTS for kind in kinds(slot))}
    assert not there & set(GONE)
    assert gone("mmr") == ""
