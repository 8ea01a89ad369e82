from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fairagent.errors import BackendUnavailable, SettingsError
from fairagent.llm.endpoint import Endpoint, retry_after
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


NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
        ({"retry-after": "Fri, 01 May 2026 12:00:20 GMT"}, 20.0),
        ({"retry-after": "Fri, 01 May 2026 12:00:20"}, 20.0),
        ({"retry-after": "Fri, 01 May 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "Fri, 01 May 99999999 12:00:20 GMT"}, None),
    ],
)
def test_retry_after(headers, seconds):
    assert retry_after(headers, NOW) == seconds
