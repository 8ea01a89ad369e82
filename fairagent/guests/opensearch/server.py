"""A search server: where it is, how fairagent signs in to it (which is never shown), and requests with their answers.

The plain protocol, which OpenSearch and Elasticsearch share. Redirects are not followed, an attempt has one end
however slowly its bytes come, no more of an answer is read than a stated size, and whatever goes wrong becomes an error
of fairagent's own. What is worth another attempt (429, 502, 503, 504, no connection) is attempted again.
"""

from __future__ import annotations

import base64
import json
import logging
import ssl
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import httpcore
import tenacity
from pydantic import SecretStr

from fairagent.extend import (
    SHORTEST_SECRET,
    BackendUnavailable,
    DataError,
    FairAgentError,
    Malformed,
    ModelError,
    SettingsError,
    TransientModelError,
    check_values,
    logger,
    open_pool,
    parse_json,
    read,
    within,
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The environment variables that hold an API key, or a user and a password; "" for none."""

    api_key: str = ""
    user: str = ""
    password: str = ""


@dataclass(frozen=True, slots=True)
class Address:
    """A server: its scheme, its host with port (for people), the path before its own, and what it is signed in with."""

    url: str = field(repr=False)
    host: str
    path: str
    sign: SecretStr = field(repr=False)
    secrets: tuple[SecretStr, ...] = field(repr=False, default=())

    @classmethod
    def find(cls, url: str, credentials: Credentials, environ: Mapping[str, str]) -> Address:
        """The server at `url`, signed in to with what the environment holds."""
        try:
            parts = urlsplit(url.strip())
            name, _ = parts.hostname, parts.port
        except ValueError:
            name = None
        if not name or parts.scheme not in ("http", "https"):
            raise SettingsError("engine.url is no address of a server; expected e.g. https://search.example.org:9200")
        if "@" in parts.netloc or parts.query:
            raise SettingsError(
                f"engine.url of {name} has a user, a password or a key in it, which settings and runs would keep; "
                "name the environment variables that hold them: engine.user_env and engine.password_env, or "
                "engine.api_key_env"
            )
        if bool(credentials.user) != bool(credentials.password) or (credentials.api_key and credentials.user):
            raise SettingsError("sign in with engine.api_key_env, or with engine.user_env and engine.password_env")
        values = {variable: environ.get(variable, "").strip() for variable in filter(None, astuple(credentials))}
        if missing := [variable for variable, value in values.items() if not value]:
            raise BackendUnavailable(f"{parts.netloc} is signed in to with {missing[0]}, which is not set")
        if strange := [variable for variable, value in values.items() if not (value.isascii() and value.isprintable())]:
            raise SettingsError(f"{strange[0]} holds characters that no key has; copy it again")
        sign = values.get(credentials.api_key, "")
        # A token (OpenSearch's JWT) says itself what it is.
        if sign and not sign.startswith(("Bearer ", "Basic ", "ApiKey ")):
            sign = f"ApiKey {sign}"
        if credentials.user:
            both = f"{values[credentials.user]}:{values[credentials.password]}"
            sign = f"Basic {base64.b64encode(both.encode()).decode()}"
        secrets = {*values.values(), sign.partition(" ")[2]} - {values.get(credentials.user, "")}
        hidden = tuple(SecretStr(secret) for secret in secrets if len(secret) >= SHORTEST_SECRET)
        base = f"{parts.scheme}://{parts.netloc}"
        return cls(base, parts.netloc, parts.path.rstrip("/"), SecretStr(sign), hidden)

    @property
    def is_plain(self) -> bool:
        """Whether what it is signed in with could be read on the way."""
        return self.url.startswith("http:") and bool(self.sign.get_secret_value())


def tls(ca: str, verify: bool) -> ssl.SSLContext | None:
    """What certificates are checked with: the file or folder `ca`, nothing at all, or (None) the system's."""
    if not verify:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    if not ca:
        return None
    try:
        return ssl.create_default_context(capath=ca) if Path(ca).is_dir() else ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise BackendUnavailable(f"engine.ca: {ca} holds no certificates that can be read ({error})") from None


BUSY = (429, 502, 503, 504)
LONGEST_WAIT = 30.0
"""Seconds. A server that asks for more is not waited for."""
LONGEST_QUOTE = 400
_FAULTS = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
)
_jitter = tenacity.wait_random_exponential(multiplier=0.5, max=LONGEST_WAIT)

log = logger(__name__)


class NotThere(BackendUnavailable):
    """The server has no such index, or no such document."""


class Forbidden(BackendUnavailable):
    """Who signed in may not do this, or the index may not be written to."""


class ServerBusy(BackendUnavailable):
    """Worth another attempt; `retry_after` is in seconds."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.worth_another = (retry_after or 0.0) <= LONGEST_WAIT


class Server:
    """A search server. Threads may share it; `host` has its port, `close` closes the connections."""

    def __init__(
        self,
        address: Address,
        timeout: float = 30.0,
        attempts: int = 5,
        tls: ssl.SSLContext | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Take where it is, the seconds that an attempt may take, the attempts of a request, and what waits."""
        self.address, self._timeout, self._attempts, self._sleep = address, timeout, attempts, sleep
        self._pool = open_pool(address.url, tls)
        weakref.finalize(self, self._pool.close)

        self.host, self.close = address.host, self._pool.close

    def __repr__(self) -> str:
        return f"Server({self.host})"

    def ask(
        self, method: str, path: str, body: Any = None, lines: Iterable[Any] | None = None, **params: str | int
    ) -> Any:
        """The JSON of the server's answer to a request with a JSON `body`, or with one JSON value a line."""
        sent = b"" if body is None else json.dumps(body).encode()
        if lines is not None:
            sent = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
        head = {"accept": "application/json", "accept-encoding": "gzip", "host": self.host}
        if sign := self.address.sign.get_secret_value():
            head["authorization"] = sign
        if sent:
            head["content-type"] = "application/json" if lines is None else "application/x-ndjson"
            head["content-length"] = str(len(sent))
        target = f"{self.address.path}{quote(path, safe='/,*_-.')}" + (f"?{urlencode(params)}" if params else "")
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, ServerBusy) and error.worth_another),
            stop=tenacity.stop_after_attempt(self._attempts),
            wait=_wait,
            sleep=self._sleep,
            before_sleep=tenacity.before_sleep_log(log, logging.INFO),
            reraise=True,
        )
        return retrying(self._attempt, method, f"{self.address.url}{target}", head, sent)

    def _attempt(self, method: str, url: str, head: Mapping[str, str], sent: bytes) -> Any:
        fault: FairAgentError
        try:
            with (
                within(self._timeout),
                self._pool.stream(method, url, headers=list(head.items()), content=sent) as answer,
            ):
                headers = {name.decode("ascii", "ignore").lower(): value for name, value in reversed(answer.headers)}
                if 300 <= answer.status < 400:
                    raise BackendUnavailable(
                        f"{self.host} answered {answer.status}: it sends requests on to another address, where nothing "
                        "was sent; set engine.url to the address of the server itself"
                    )
                coding = headers.get("content-encoding", b"").decode("ascii", "ignore")
                text = b"".join(read(answer.iter_stream(), coding, self.host)).decode("utf-8", "replace")
                return self._understood(answer.status, text, headers.get("retry-after", b""))
        except _FAULTS as error:
            fault = self._unreached(error)
        except TransientModelError as error:
            fault = ServerBusy(str(error))
        except ModelError as error:
            fault = BackendUnavailable(str(error))
        # Out of the handler, so that the client's error, which knows the request, is not its context.
        raise fault

    def _understood(self, status: int, text: str, retry_after: bytes) -> Any:
        if 200 <= status < 300:
            check_values(text, self.host)
            try:
                return parse_json(text)
            except Malformed as error:
                raise BackendUnavailable(
                    f"{self.host} answered with something that is no JSON ({error}); is this an OpenSearch or "
                    "Elasticsearch server, and is engine.url right?"
                ) from None
        reason = self.quoted(reason_of(text))
        if status in BUSY:
            raise ServerBusy(f"{self.host} answered {status}{reason}", _seconds(retry_after))
        if status in (401, 403):
            remedy = "check what the environment variables of engine.api_key_env or engine.user_env hold, and its role"
            raise Forbidden(f"{self.host} does not allow this ({status}){reason}; {remedy}")
        if status == 404:
            raise NotThere(f"{self.host} has no such thing (404){reason}")
        if status == 400:
            raise DataError(f"{self.host} calls the request wrong{reason}")
        raise BackendUnavailable(f"{self.host} answered {status}{reason}")

    def quoted(self, message: str) -> str:
        """A server's own words, for a message: in one line, without secrets that it may have echoed, not too long."""
        line = " ".join(message.split())
        for secret in self.address.secrets:
            line = line.replace(secret.get_secret_value(), "***")
        return f": {line[:LONGEST_QUOTE]}{' ...' * (len(line) > LONGEST_QUOTE)}" if line else ""

    def _unreached(self, error: Exception) -> BackendUnavailable:
        if isinstance(error, httpcore.TimeoutException):
            return ServerBusy(f"{self.host} did not answer in {self._timeout:g} s (engine.timeout)")
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return BackendUnavailable(
                f"the certificate of {self.host} cannot be trusted; set engine.ca to the file of the authority that "
                f"signed it{self.quoted(str(error))}"
            )
        return ServerBusy(
            f"no connection to {self.host} ({type(error).__name__}); is a server running there, and is engine.url "
            "right (http or https)?"
        )


def reason_of(text: str) -> str:
    """The server's own reason, from the body of an error: that of the first shard that failed, where one did."""
    try:
        error = parse_json(text)["error"]
        if isinstance(error, str):
            return error
        causes = [shard["reason"] for shard in error.get("failed_shards") or ()] or error.get("root_cause") or [error]
        return f"{causes[0].get('type', '')}: {causes[0].get('reason', '')}"
    except (Malformed, KeyError, TypeError, AttributeError, IndexError):
        return ""


def _wait(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    return max(error.retry_after or 0.0 if isinstance(error, ServerBusy) else 0.0, _jitter(state))


def _seconds(header: bytes) -> float | None:
    try:
        return max(0.0, float(header))
    except ValueError:
        return None
