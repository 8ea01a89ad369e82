"""Any OpenAI-compatible server (OpenAI, vLLM, Ollama, llama.cpp, LiteLLM ...) as a `Model`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fairagent.errors import BudgetExceeded, ModelError, ReplyTruncated, TransientModelError
from fairagent.llm.capabilities import OVERRUN, form_identity
from fairagent.llm.completion import STREAM, read_completion, read_stream
from fairagent.llm.exchange import attempt
from fairagent.llm.request import ModelReply, ModelRequest, check_room, estimate_tokens
from fairagent.llm.server import Call, Refused, ServerModel
from fairagent.llm.transport import lines, within
from fairagent.types import Usage
from fairagent.types.clean import logger

log = logger(__name__)

TOP = 20
"""Tokens whose chances a server reports in each place of a reply: the most that OpenAI allows."""
LONGER = 2
"""By this factor a reply that was cut off may be longer at its second and last try."""
CUT_OFF = f"cut off, asked again for up to {LONGER} times the tokens"


@dataclass(slots=True)
class _ChatCall(Call):
    """One `complete`, or one `stream` where there is an `on_text`; `streamed` are the pieces that it has got so far."""

    request: ModelRequest = field(kw_only=True)
    on_text: Callable[[str], None] | None = None
    streamed: list[str] = field(default_factory=list)
    tries: int = 0
    longer: int = 1
    cut_off: ReplyTruncated | None = None
    before: Usage = field(default_factory=Usage)

    def pass_on(self, piece: str) -> None:
        """Give `on_text` the next piece of the answer."""
        if self.on_text:
            self.streamed.append(piece)
            self.on_text(piece)

    @property
    def text(self) -> str:
        """What was streamed so far."""
        return "".join(self.streamed)


class OpenAIModel(ServerModel):
    """A model behind a chat completion API; see `ServerModel`.

    A JSON reply is requested in the strictest form that the server takes (`Capabilities`).
    """

    def identity(self, request: ModelRequest) -> dict[str, Any]:
        """Everything that may change the reply, but for what the server refuses, as plain values without a secret."""
        return {"server": self.endpoint.base_url, **self._full_payload(request), **form_identity(request)}

    def payload(self, request: ModelRequest, longer: int = 1, streamed: bool = False) -> dict[str, Any]:
        """The body of the request as this server takes it; `longer` multiplies the longest reply."""
        options = {"stream": True, "stream_options": {"include_usage": True}} if streamed else {}
        return self.server.capabilities.shape(self._full_payload(request, longer) | options, request)

    def hide(self, text: str) -> str:
        """`text` without the key."""
        return self.endpoint.hide(text)

    def complete(self, request: ModelRequest) -> ModelReply:
        """The model's answer; see `Model.complete`. Raises BudgetExceeded as well."""
        return self._run(request, None)

    def stream(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        """The model's answer, piece by piece; see `StreamingModel.stream`. Raises BudgetExceeded as well.

        Until the first piece has come, what fails is tried again as in `complete`.
        """
        return self._run(request, on_text)

    def _full_payload(self, request: ModelRequest, longer: int = 1) -> dict[str, Any]:
        settings = self.settings
        temperature = settings.temperature if request.temperature is None else request.temperature
        payload: dict[str, Any] = {
            "model": settings.name,
            "messages": [{"role": role, "content": text} for role, text in request.messages],
            "temperature": temperature,
            "max_tokens": min(settings.max_tokens, request.max_tokens or settings.max_tokens) * longer,
        }
        if request.seed is not None:
            payload["seed"] = request.seed
        if request.choices:
            payload |= {"logprobs": True, "top_logprobs": TOP}
        return payload

    def _run(self, request: ModelRequest, on_text: Callable[[str], None] | None) -> ModelReply:
        check_room(self.settings, request)
        call = _ChatCall(*self._times(), request=request, on_text=on_text)
        # All attempts at a form are one turn of the breaker, so that of many threads one learns what the server takes.
        sort = (request.reply is not None, request.seed is not None, on_text is not None, bool(request.choices))
        try:
            reply = self._repeat(lambda: self._attempt(call), sort, call)
        except (ModelError, BudgetExceeded) as error:
            error.usage = self._total(call, error.usage, self._notes(call))
            raise
        return reply.with_usage(self._total(call, reply.usage, self._notes(call)))

    def _notes(self, call: _ChatCall) -> tuple[str, ...]:
        """What was not as it should be: of this call, and of every call to this server."""
        retries = max(0, call.tries - 1)
        return (
            *([f"{retries} retr{'y' if retries == 1 else 'ies'}"] if retries else []),
            *([CUT_OFF] if call.cut_off and call.longer == LONGER else []),
            *self.server.capabilities.lacks(call.request),
        )

    def _attempt(self, call: _ChatCall) -> ModelReply:
        """One try: a request, and again where the server could not take its form or cut the reply off."""
        call.tries += 1
        capabilities = self.server.capabilities
        while True:
            payload = self.payload(call.request, call.longer, call.on_text is not None)
            error: ModelError
            note: str | None
            try:
                return attempt(partial(self._post, payload, call), lambda: call.text)
            except Refused as refused:
                error, note = refused.error, capabilities.learn(payload, refused.body)
            except ReplyTruncated as truncated:
                error, note = truncated, None
                if not call.streamed and capabilities.overrun(payload, call.request):
                    note = OVERRUN
                elif not call.streamed and call.longer == 1:
                    call.longer, note = LONGER, CUT_OFF
                if note:
                    call.cut_off, call.before, call.spent = truncated, call.spent, call.spent + truncated.usage
            except BudgetExceeded:
                if call.cut_off is None:
                    raise
                # No room for the longer try: the first one is what there is.
                error, note, call.cut_off, call.spent = call.cut_off, None, None, call.before
            if note is None:
                # Out of the handlers: what the server wrote in full must not be its context.
                raise error
            log.info("%s: %s", self, note)

    def _post(self, payload: dict[str, Any], call: _ChatCall) -> ModelReply:
        """One request, if the budget has room for it."""
        longest = payload.get("max_tokens") or payload["max_completion_tokens"]
        # An estimate may be too low by half where the text is no English prose; usage then settles it.
        read = estimate_tokens(*(message["content"] for message in payload["messages"]))
        with self._reserved(read, longest, call) as reservation:
            # Before the time begins: the first use loads modules for a second.
            create = self._client.chat.completions.with_raw_response.create
            left = call.end - self._clock()
            try:
                # A stream may go on while something comes; what comes as a whole is one wait.
                with within(left if "stream" in payload else min(left, self.settings.timeout)):
                    response = self._send(create, payload, refusable=True)
                    reply = (self._read_stream if "stream" in payload else self._read)(response, call)
            except ModelError:
                raise
            except BaseException:
                # A listener that has gone; what was written for it is paid for.
                if call.streamed:
                    self._settle(reservation, read, estimate_tokens(call.text))
                raise
            self._settle(reservation, reply.input_tokens, reply.output_tokens)
            return reply

    def _read(self, response: Any, call: _ChatCall) -> ModelReply:
        """The reply that came as a whole."""
        content_type = response.headers.get("content-type", "")
        reply = read_completion(response.text, content_type, call.request, self.endpoint, self.name)
        call.pass_on(reply.text)
        return reply

    def _read_stream(self, response: Any, call: _ChatCall) -> ModelReply:
        """The reply that comes as a stream, or as a whole all the same, passed on as it comes."""

        def in_time() -> Iterator[str]:
            for line in lines(response.iter_bytes(), self.endpoint.host):
                # Whoever listens takes time as well.
                if self._clock() > call.end:
                    raise TransientModelError(f"{self.endpoint.host} did not finish in time (model.deadline)")
                yield line

        error: ModelError
        try:
            with closing(response):
                if STREAM not in response.headers.get("content-type", ""):
                    response.read()
                    return self._read(response, call)
                return read_stream(in_time(), call.request, self.endpoint, self.name, call.pass_on)
        except ModelError as raised:
            error = raised
        if call.streamed and not error.usage.calls:
            if isinstance(error, TransientModelError):
                error = ModelError(f"{error}; it is not asked for again, since part of it was shown")
            read = estimate_tokens(*(text for _, text in call.request.messages))
            error.usage = Usage(1, read, estimate_tokens(call.text), estimated=True)
        raise error
