from __future__ import annotations

import pytest

from fairagent.errors import BackendUnavailable, SettingsError
from fairagent.llm.endpoint import Endpoint
from fairagent.llm.openai import OpenAIModel
from fairagent.settings import ModelSettings

KEY = {"OPENAI_API_KEY": "sk-canary-0123456789abcdef"}


@pytest.mark.parametrize(
    ("setting", "environ", "url"),
    [
        ("", KEY, "https://api.openai.com/v1"),
        ("", {**KEY, "OPENAI_BASE_URL": " "}, "https://api.openai.com/v1"),
        ("", {"OPENAI_BASE_URL": "http://localhost:11434/v1"}, "http://localhost:11434/v1"),
        ("http://127.0.0.1:8000/v1", {**KEY, "OPENAI_BASE_URL": "http://other/v1"}, "http://127.0.0.1:8000/v1"),
        ("http://[::1]:8000/v1", {}, "http://[::1]:8000/v1"),
        ("https://anna:secret@llm.example.org/v1#x", KEY, "https://llm.example.org/v1"),
    ],
)
def test_the_setting_beats_the_environment_and_openai_is_last(setting, environ, url):
    endpoint = Endpoint.find(setting, environ)
    assert endpoint.base_url == url
    assert endpoint.host in url
    assert "secret" not in repr(endpoint)


@pytest.mark.parametrize("url", ["", "https://llm.example.org/v1", "http://8.8.8.8/v1"])
@pytest.mark.parametrize("name", ["", "tiny"])
@pytest.mark.parametrize("key", [{}, {"OPENAI_API_KEY": " \n"}])
def test_no_key_says_what_to_set_and_what_works_without(url, name, key):
    with pytest.raises(BackendUnavailable) as caught:
        OpenAIModel(ModelSettings(name=name, base_url=url), key)
    for words in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "`profile: offline` works without a model"):
        assert words in str(caught.value)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "[::1]", "10.0.0.4", "192.168.1.7:8000", "ollama", "a.local"]
)
def test_a_local_server_needs_no_key(host):
    assert Endpoint.find(f"http://{host}/v1", {}).key.get_secret_value() == ""


@pytest.mark.parametrize("key", ["sk-canary…", "sk-canary\n-second-line", "“sk-canary”"])
def test_a_key_that_cannot_be_one_is_not_quoted(key):
    with pytest.raises(SettingsError, match="OPENAI_API_KEY holds characters") as caught:
        Endpoint.find("", {"OPENAI_API_KEY": key})
    assert "canary" not in str(caught.value)
