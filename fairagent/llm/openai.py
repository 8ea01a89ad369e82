"""Any OpenAI-compatible server (OpenAI, vLLM, Ollama, llama.cpp, LiteLLM ...) as a `Model`."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

from fairagent.errors import ModelError, SettingsError
from fairagent.llm.base import ModelReply, ModelRequest
from fairagent.llm.endpoint import Endpoint
from fairagent.llm.faults import from_client
from fairagent.llm.retry import Retry
from fairagent.llm.wire import read_completion
from fairagent.settings import ModelSettings

log = logging.getLogger(__name__)


class OpenAIModel:
    """A model behind a chat completion API, called through the `openai` package; threads may share it.

    A JSON reply is asked for as such (`response_format`) until the server says that it cannot; from then on the
    prompt alone asks. `sleep` waits between attempts and takes seconds.
    """

    def __init__(
        self, settings: ModelSettings, endpoint: Endpoint, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        # Here and not above: openai takes a third of a second to load, and most runs need no model.
        import openai

        self.settings = settings
        self.endpoint = endpoint
        self._retry = Retry(settings.attempts, sleep)
        self._json_object = True
        self._client = openai.OpenAI(
            api_key=endpoint.key.get_secret_value() or "no-key",
            base_url=endpoint.base_url,
            timeout=settings.timeout,
            max_retries=0,
        )

    @classmethod
    def from_settings(
        cls,
        settings: ModelSettings,
        environ: Mapping[str, str] = os.environ,
        sleep: Callable[[float], None] = time.sleep,
    ) -> OpenAIModel:
        """The model that the settings name, with the key OPENAI_API_KEY; nothing is called yet.

        Raises BackendUnavailable without a key (a local server needs none), SettingsError without a model's name.
        """
        endpoint = Endpoint.find(settings.base_url, environ)
        if not settings.name:
            raise SettingsError(
                "no language model is named: set `model: {name: ...}` in the settings file, FAIRAGENT_MODEL__NAME in "
                'the environment, or model={"name": ...} in the call'
            )
        return cls(settings, endpoint, sleep)

    def __repr__(self) -> str:
        return f"OpenAIModel({self.settings.name!r} at {self.endpoint.host})"

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def payload(self, request: ModelRequest) -> dict[str, Any]:
        """The request as it goes over the wire: everything that may change the reply, and no secret."""
        settings = self.settings
        temperature = settings.temperature if request.temperature is None else request.temperature
        payload: dict[str, Any] = {
            "model": settings.name,
            "messages": [{"role": role, "content": text} for role, text in request.messages],
            "temperature": temperature,
            "max_tokens": min(settings.max_tokens, request.max_tokens or settings.max_tokens),
        }
        if request.seed is not None:
            payload["seed"] = request.seed
        if request.reply is not None and self._json_object:
            payload["response_format"] = {"type": "json_object"}
        return payload

    def complete(self, request: ModelRequest) -> ModelReply:
        """The model's answer; see `Model.complete`."""
        started = perf_counter()
        calls = 0

        def attempt() -> ModelReply:
            nonlocal calls
            calls += 1
            try:
                return self._post(request)
            except _NoJsonObject:
                log.info("%s: no response_format json_object; the prompt alone asks for JSON from now on", self)
                self._json_object = False
            calls += 1
            return self._post(request)

        try:
            reply = self._retry.run(attempt)
        except ModelError as error:
            error.usage = replace(error.usage, calls=calls, seconds=perf_counter() - started)
            raise
        return replace(reply, calls=calls, seconds=perf_counter() - started)

    def _post(self, request: ModelRequest) -> ModelReply:
        import openai

        payload = self.payload(request)
        try:
            raw = self._client.chat.completions.with_raw_response.create(**payload)
        except openai.OpenAIError as error:
            status = getattr(error, "status_code", None)
            log.info("%s: %s, status %s", self, type(error).__name__, status)
            fault = from_client(error, self.endpoint, self.settings.name)
            if status in (400, 422) and "response_format" in payload and _about_the_form(error):
                fault = _NoJsonObject(str(fault))
        else:
            response = raw.http_response
            content_type = response.headers.get("content-type", "")
            return read_completion(response.text, content_type, request, self.endpoint, self.settings.name)
        # Out of the handler, so that the client's error, which knows the key, is not its context.
        raise fault


class _NoJsonObject(ModelError):
    """The server does not take `response_format`."""


def _about_the_form(error: Exception) -> bool:
    said = str(error).lower()
    return any(word in said for word in ("response_format", "response format", "json_object", "json mode"))
