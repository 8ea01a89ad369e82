"""A Chromium that tests drive: its DevTools protocol over a WebSocket."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0"),
)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None and "BROWSER_REQUIRED" not in os.environ,
    reason="no chromium is installed (apt-get install chromium)",
)
"""Skips a test where there is no Chromium; with the variable BROWSER_REQUIRED the test fails there instead."""
KEYS = {"Enter": ("\r", 13), "Tab": ("", 9), "Escape": ("", 27), "Backspace": ("", 8)}
PATIENCE = 60.0


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """A browser with its profile in `folder`, while the block runs."""
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder}", "about:blank"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            place = folder / "DevToolsActivePort"
            waited(lambda: place.is_file() and place.read_text().count("\n") >= 1)
            port, path = place.read_text().split("\n")[:2]
            with connect(f"ws://127.0.0.1:{port}{path}", max_size=None, proxy=None) as socket:
                yield Browser(socket)
        finally:
            process.terminate()


class PageLeft(AssertionError):
    """The page went while an expression was evaluated in it."""


class Browser:
    """A page; `said` is what its console complained of, `requested` what it loaded."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._number = 0
        self._session = ""
        self.said: list[str] = []
        self.requested: list[str] = []
        target = self.do("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.do(f"{domain}.enable")

    def do(self, method: str, **parameters: Any) -> Any:
        """The result of a command."""
        self._number += 1
        session = {"sessionId": self._session} if self._session else {}
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters, **session}))
        while True:
            told = json.loads(self._socket.recv(timeout=PATIENCE))
            if told.get("id") == self._number:
                if "navigated" in str(told.get("error")):
                    raise PageLeft(told)
                assert "error" not in told, told
                return told["result"]
            self._note(told)

    def _note(self, told: Any) -> None:
        method, about = told.get("method"), told.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requested.append(about["request"]["url"])
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.said.append(about["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.said.append(str(about["exceptionDetails"]))

    def open(self, address: str) -> None:
        """Go to an address, and wait until it is loaded."""
        self.do("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def begin(self, address: str) -> None:
        """The same in a light window of 1280 pixels, whatever a test before has set."""
        self.size(1280)
        self.prefer("light")
        self.open(address)

    @contextmanager
    def inside(self, path: str) -> Iterator[None]:
        """In the block the page is its frame of another origin whose address ends so."""
        outer, self._session = self._session, ""
        frames: list[str] = []

        def found() -> bool:
            targets = self.do("Target.getTargets")["targetInfos"]
            frames[:] = [one["targetId"] for one in targets if one["type"] == "iframe" and one["url"].endswith(path)]
            return bool(frames)

        try:
            waited(found, f"a frame {path}")
            self._session = self.do("Target.attachToTarget", targetId=frames[0], flatten=True)["sessionId"]
            yield
        finally:
            self._session = outer

    @contextmanager
    def quiet(self, address: str) -> Iterator[None]:
        """In the block nothing may be complained of, and nothing asked for but of the server at `address`."""
        self.said.clear()
        self.requested.clear()
        yield
        assert self.said == []
        assert [url for url in self.requested if not url.startswith((address, "data:"))] == []

    def beyond(self, width: int, inside: str) -> list[str]:
        """The elements that reach beyond so many pixels, but for those within the selector `inside`."""
        found: list[str] = self.run(
            f"[...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > {width} + 1 "
            f"&& !one.closest({json.dumps(inside)})).map((one) => one.outerHTML.slice(0, 120))"
        )
        return found

    def run(self, code: str) -> Any:
        """The value of an expression in the page."""
        found = self.do("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True, userGesture=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, code: str) -> None:
        """Wait until an expression holds, in this page or the one that follows it."""

        def holds() -> Any:
            with suppress(PageLeft):
                return self.run(code)

        waited(holds, code)

    def text(self, selector: str) -> str:
        """What is shown of the first element."""
        found: str = self.run(f"document.querySelector({json.dumps(selector)}).innerText")
        return found

    def click(self, selector: str) -> None:
        """Click the first element."""
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def give(self, selector: str, value: Any, event: str = "input") -> None:
        """Give the first control a value, as a hand does."""
        self.run(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)}); one.value = {json.dumps(value)}; "
            f"one.dispatchEvent(new Event('{event}', {{ bubbles: true }})); }})()"
        )

    def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            text, code = KEYS[key]
            about = {"key": key, "code": key, "windowsVirtualKeyCode": code}
            self.do("Input.dispatchKeyEvent", type="keyDown", **about, **({"text": text} if text else {}))
            self.do("Input.dispatchKeyEvent", type="keyUp", **about)

    def type(self, text: str) -> None:
        """Type a text where the focus is."""
        self.do("Input.insertText", text=text)

    def size(self, width: int, height: int = 900) -> None:
        """As wide as a screen."""
        self.do(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 700
        )

    def prefer(self, scheme: str) -> None:
        """Dark or light."""
        self.do("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])


def waited(holds: Callable[[], Any], what: str = "") -> None:
    """Wait until it holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"in vain: {what}"
        time.sleep(0.05)
