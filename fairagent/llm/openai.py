"""Any OpenAI-compatible server (OpenAI, vLLM, Ollama, llama.cpp, LiteLLM ...) as a `Model`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

from fairagent.errors import BudgetExceeded, ModelError, ReplyTruncated, TransientModelError
from fairagent.llm.budget import Budget
from fairagent.llm.capabilities import OVERRUN, Capabilities, form_identity
from fairagent.llm.completion import STREAM, read_completion, read_stream
from fairagent.llm.connection import lines, within
from fairagent.llm.endpoint import Endpoint, check_named, open_client
from fairagent.llm.exchange import attempt
from fairagent.llm.faults import BadStatus, from_client
from fairagent.llm.request import ModelReply, ModelRequest, check_room, estimate_tokens
from fairagent.llm.retry import Allowance, Breaker, Retry
from fairagent.settings import ModelSettings, Price
from fairagent.settings.models import cost_of
from fairagent.types import Usage
from fairagent.types.clean import logger

log = logger(__name__)

TOP = 20
"""Tokens whose chances a server is asked for in each place of a reply: the most that OpenAI tells."""
LONGER = 2
"""By this factor a reply that was cut off may be longer at its second and last try."""
CUT_OFF = f"cut off, asked again for up to {LONGER} times the tokens"


class ServerState:
    """The state of one server and model: its health, its capabilities, and the retries left.

    Every OpenAIModel of the two shares it, whatever its other settings.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.breaker = Breaker(clock)
        self.capabilities = Capabilities()
        self.allowance = Allowance()


class OpenAIModel:
    """A model behind a chat completion API, called through the `openai` package; threads may share it.

    A JSON reply is asked for in the strictest form that the server takes (`Capabilities`). `budget` is asked before
    every request that leaves. `price` turns tokens into dollars; without it costs are not known. `sleep` waits between
    attempts and takes seconds, `clock` tells them.
    """

    def __init__(
        self,
        settings: ModelSettings,
        endpoint: Endpoint,
        budget: Budget | None = None,
        price: Price | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self.endpoint = endpoint
        self.server = ServerState(clock)
        self._budget = budget or Budget()
        self._price = price
        self._clock = clock
        self._retry = Retry(settings.attempts, settings.deadline, sleep, clock)
        self._client = open_client(endpoint, settings)

    @classmethod
    def from_settings(
        cls,
        settings: ModelSettings,
        environ: Mapping[str, str] = os.environ,
        budget: Budget | None = None,
        price: Price | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> OpenAIModel:
        """The model that the settings name, with the key OPENAI_API_KEY; nothing is called yet.

        Raises BackendUnavailable without a key (a local server needs none), SettingsError without a model's name.
        """
        endpoint = Endpoint.find(settings.base_url, environ)
        check_named(settings)
        return cls(settings, endpoint, budget, price, sleep, clock)

    def __repr__(self) -> str:
        return f"OpenAIModel({self.settings.name!r} at {self.endpoint.host})"

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def identity(self, request: ModelRequest) -> dict[str, Any]:
        """Everything that may change the reply, as plain values without a secret: what is asked of whom.

        What the server was found to refuse is left out: that is its nature, not the request's.
        """
        return {"server": self.endpoint.base_url, **self._wanted(request, 1), **form_identity(request)}

    def payload(self, request: ModelRequest, longer: int = 1, streamed: bool = False) -> dict[str, Any]:
        """The body of the request as this server takes it; `longer` multiplies the longest reply."""
        stream = {"stream": True, "stream_options": {"include_usage": True}} if streamed else {}
        return self.server.capabilities.shape(self._wanted(request, longer) | stream, request)

    def complete(self, request: ModelRequest) -> ModelReply:
        """The model's answer; see `Model.complete`. Raises BudgetExceeded as well."""
        return self._run(_Call(self, request))

    def stream(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        """The model's answer, told piece by piece; see `StreamingModel.stream`. Raises BudgetExceeded as well.

        Until the first piece was told, what fails is tried again as in `complete`.
        """
        return self._run(_Call(self, request, on_text))

    def _run(self, call: _Call) -> ModelReply:
        check_room(self.settings, call.request)
        started = self._clock()

        def took(last: Usage) -> dict[str, Any]:
            read, written = call.spent.input_tokens + last.input_tokens, call.spent.output_tokens + last.output_tokens
            return {
                "calls": call.sent,
                "input_tokens": read,
                "output_tokens": written,
                "cost": self.cost(read, written),
                "seconds": self._clock() - started,
                "notes": tuple(dict.fromkeys((*call.noted(), *call.spent.notes, *last.notes))),
            }

        try:
            reply = self._retry.run(call.attempt, self.server.allowance)
        except (ModelError, BudgetExceeded) as error:
            error.usage = replace(error.usage, **took(error.usage))
            raise
        return replace(reply, **took(reply.usage))

    def _wanted(self, request: ModelRequest, longer: int) -> dict[str, Any]:
        settings = self.settings
        temperature = settings.temperature if request.temperature is None else request.temperature
        wanted: dict[str, Any] = {
            "model": settings.name,
            "messages": [{"role": role, "content": text} for role, text in request.messages],
            "temperature": temperature,
            "max_tokens": min(settings.max_tokens, request.max_tokens or settings.max_tokens) * longer,
        }
        if request.seed is not None:
            wanted["seed"] = request.seed
        if request.choices:
            wanted |= {"logprobs": True, "top_logprobs": TOP}
        return wanted

    def hide(self, text: str) -> str:
        """`text` without the key."""
        return self.endpoint.hide(text)

    def cost(self, input_tokens: int, output_tokens: int) -> float | None:
        """US dollars for so many tokens; None where the price is not known."""
        return cost_of(self._price, input_tokens, output_tokens)

    def _post(self, payload: dict[str, Any], call: _Call) -> ModelReply:
        """One request, if the budget has room for it."""
        texts = [message["content"] for message in payload["messages"]]
        longest = payload.get("max_tokens") or payload["max_completion_tokens"]
        # An estimate may be too low by half where the text is no English prose; usage then settles it.
        read = estimate_tokens(*texts)
        if self._clock() >= call.end:
            raise TransientModelError(f"no time is left to ask {self.endpoint.host} (model.deadline in the settings)")
        with self._budget.reserve(read + longest, self.cost(read, longest) or 0.0) as held:
            call.sent += 1
            # Before the time begins: the first use loads modules for a second.
            create = self._client.chat.completions.with_raw_response.create
            left = call.end - self._clock()
            try:
                # A stream may go on while something comes; what comes as a whole is one wait.
                with within(left if "stream" in payload else min(left, self.settings.timeout)):
                    reply = self._send(create, payload, call)
            except ModelError as error:
                used = error.usage
                tokens = used.input_tokens + used.output_tokens
                held.settle(tokens, self.cost(used.input_tokens, used.output_tokens) or 0.0)
                raise
            except BaseException:
                # A listener that has gone; what was written for it is paid for.
                if call.heard:
                    written = estimate_tokens(call.heard)
                    held.settle(read + written, self.cost(read, written) or 0.0)
                raise
            cost = self.cost(reply.input_tokens, reply.output_tokens) or 0.0
            held.settle(reply.input_tokens + reply.output_tokens, cost)
            return reply

    def _send(self, create: Callable[..., Any], payload: dict[str, Any], call: _Call) -> ModelReply:
        import openai

        try:
            raw = create(**payload)
        except openai.OpenAIError as error:
            log.info("%s: %s", self, type(error.__cause__ or error).__name__)
            fault = from_client(error, self.endpoint, self.settings.name)
            answered = error.__cause__
            if isinstance(answered, BadStatus) and answered.status in (400, 422, 500, 501):
                fault = _Refused(fault, self.endpoint.hide(answered.said))
        else:
            response = raw.http_response
            return self._hear(response, call) if "stream" in payload else self._read(response, call)
        # Out of the handler, so that the client's error, which knows the key, is not its context.
        raise fault

    def _read(self, response: Any, call: _Call) -> ModelReply:
        """The reply that came as a whole."""
        content_type = response.headers.get("content-type", "")
        reply = read_completion(response.text, content_type, call.request, self.endpoint, self.settings.name)
        call.tell(reply.text)
        return reply

    def _hear(self, response: Any, call: _Call) -> ModelReply:
        """The reply that comes as a stream, told as it comes, or as a whole all the same."""

        def in_time() -> Iterator[str]:
            for line in lines(response.iter_bytes(), self.endpoint.host):
                # Whoever listens takes time as well.
                if self._clock() > call.end:
                    raise TransientModelError(f"{self.endpoint.host} did not finish in time (model.deadline)")
                yield line

        fault: ModelError
        try:
            with closing(response):
                if STREAM not in response.headers.get("content-type", ""):
                    response.read()
                    return self._read(response, call)
                return read_stream(in_time(), call.request, self.endpoint, self.settings.name, call.tell)
        except ModelError as error:
            fault = error
        if call.heard and not fault.usage.calls:
            if isinstance(fault, TransientModelError):
                fault = ModelError(f"{fault}; it is not asked for again, since part of it was shown")
            read = estimate_tokens(*(text for _, text in call.request.messages))
            fault.usage = Usage(1, read, estimate_tokens(call.heard), estimated=True)
        raise fault


class _Refused(ModelError):
    """The server did not accept the request; `said` is what it said, `fault` what that is if nothing can be done."""

    def __init__(self, fault: ModelError, said: str) -> None:
        super().__init__(str(fault))
        self.fault = fault
        self.said = said


class _Call:
    """One `complete`: counts the requests that leave and the tokens of a reply that was cut off, and keeps notes.

    Or one `stream`, where there is an `on_text`; `heard` is what that was told so far. All of it is over at
    `end`, by the model's clock.
    """

    def __init__(self, model: OpenAIModel, request: ModelRequest, on_text: Callable[[str], None] | None = None) -> None:
        self.request = request
        self.sent = 0
        self.spent = Usage()
        self.end = model._clock() + model.settings.deadline
        self._heard: list[str] = []
        self._model = model
        self._on_text = on_text
        self._tries = 0
        self._longer = 1
        self._cut_off: ReplyTruncated | None = None
        self._before = Usage()

    def attempt(self) -> ModelReply:
        """One try: a request, and again where the server could not take its form or cut the reply off."""
        kind = (
            self.request.reply is not None,
            self.request.seed is not None,
            self._on_text is not None,
            bool(self.request.choices),
        )
        # All of it is one turn, so that of many threads one finds out what the server cannot take.
        return self._model.server.breaker.run(self._ask, kind, self.end - self._model._clock())

    def tell(self, piece: str) -> None:
        """Tell whoever listens the next piece of the answer."""
        if self._on_text:
            self._heard.append(piece)
            self._on_text(piece)

    @property
    def heard(self) -> str:
        """What was told so far."""
        return "".join(self._heard)

    def _ask(self) -> ModelReply:
        self._tries += 1
        model = self._model
        while True:
            payload = model.payload(self.request, self._longer, self._on_text is not None)
            fault: ModelError
            note: str | None
            try:
                return attempt(partial(model._post, payload, self), lambda: self.heard)
            except _Refused as refused:
                fault = refused.fault
                note = model.server.capabilities.learn(payload, refused.said)
            except ReplyTruncated as error:
                fault, note = error, None
                if not self.heard and model.server.capabilities.overrun(payload, self.request):
                    note = OVERRUN
                elif not self.heard and self._longer == 1:
                    self._longer, note = LONGER, CUT_OFF
                if note:
                    self._cut_off, self._before, self.spent = error, self.spent, self.spent + error.usage
            except BudgetExceeded:
                if self._cut_off is None:
                    raise
                # No room for the longer try: the first one is what there is.
                fault, note, self._cut_off, self.spent = self._cut_off, None, None, self._before
            if note is None:
                # Out of the handlers: what the server said in full must not be its context.
                raise fault
            log.info("%s: %s", model, note)

    def noted(self) -> tuple[str, ...]:
        """What was not as it should be: of this call, and of every call to this server."""
        retries = max(0, self._tries - 1)
        return (
            *([f"{retries} retr{'y' if retries == 1 else 'ies'}"] if retries else []),
            *([CUT_OFF] if self._cut_off and self._longer == LONGER else []),
            *self._model.server.capabilities.lacks(self.request),
        )
