"""Where a search server is and how fairagent signs in to it; what it signs in with is never shown."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from fairagent.errors import BackendUnavailable, SettingsError
from fairagent.llm.endpoint import SHORTEST_SECRET


@dataclass(frozen=True, slots=True)
class Credentials:
    """The environment variables that hold an API key, or a user and a password; "" for none."""

    api_key: str = ""
    user: str = ""
    password: str = ""

    @property
    def named(self) -> tuple[str, ...]:
        """The variables that have to be set."""
        return tuple(filter(None, (self.api_key, self.user, self.password)))


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
        """The server at `url`, signed in to with what the environment holds.

        Raises SettingsError for a `url` that is no address, or has a user or a key in it, and for half a sign-in;
        BackendUnavailable where a variable that the settings name is not set.
        """
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
        values = {variable: environ.get(variable, "").strip() for variable in credentials.named}
        if missing := [variable for variable, value in values.items() if not value]:
            raise BackendUnavailable(f"{parts.netloc} is signed in to with {missing[0]}, which is not set")
        if strange := [variable for variable, value in values.items() if not (value.isascii() and value.isprintable())]:
            raise SettingsError(f"{strange[0]} holds characters that no key has; copy it again")
        sign = ""
        if credentials.api_key:
            key = values[credentials.api_key]
            # A token (OpenSearch's JWT) says itself what it is.
            sign = key if key.startswith(("Bearer ", "Basic ", "ApiKey ")) else f"ApiKey {key}"
        elif credentials.user:
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

    def hide(self, text: str) -> str:
        """`text` without any secret, wherever a server may have echoed one."""
        for secret in self.secrets:
            text = text.replace(secret.get_secret_value(), "***")
        return text


def tls(ca: str, verify: bool) -> ssl.SSLContext | None:
    """What certificates are checked with: the file or folder `ca`, nothing at all, or (None) the system's.

    Raises BackendUnavailable where `ca` holds no certificates.
    """
    if not verify:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    if not ca:
        return None
    place = Path(ca)
    try:
        return ssl.create_default_context(
            cafile=None if place.is_dir() else str(place), capath=str(place) if place.is_dir() else None
        )
    except (OSError, ssl.SSLError) as error:
        raise BackendUnavailable(f"engine.ca: {ca} holds no certificates that can be read ({error})") from None
