"""A headless browser for tests of pages: Chromium, driven over a pair of pipes by the DevTools protocol.

Set-up installs one on Debian. Where there is none, find() gives None and tests are skipped.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "no Chromium or Chrome to show pages with"


def find() -> str | None:
    """The path of a browser; None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One tab. `messages` has what the page logged, what its policy refused, and exceptions of its script; `requests`
    the addresses that it asked for.
    """

    def __init__(self, program: str, profile: Path, seconds: float = 60) -> None:
        """profile: a folder for the browser's own files. seconds: how long one answer may take."""
        self._seconds, self._number, self._held = seconds, 0, b""
        self.messages: list[str] = []
        self.requests: list[str] = []
        to_browser, from_us = os.pipe()
        to_us, from_browser = os.pipe()
        command = [
            *(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"),
            *("--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update"),
            *("--no-default-browser-check", "--hide-scrollbars", f"--user-data-dir={profile}", "about:blank"),
        ]

        def as_third_and_fourth() -> None:
            os.dup2(to_browser, 1000)
            os.dup2(from_browser, 1001)
            os.dup2(1000, 3)
            os.dup2(1001, 4)

        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=as_third_and_fourth,
            start_new_session=True,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._out, self._in = from_us, to_us
        self._session = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        """Itself."""
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Ends the browser, which is a group of processes of its own."""
        os.close(self._out)
        os.close(self._in)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol and its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + self._seconds
        while b"\0" not in self._held:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            read = os.read(self._in, 1 << 20)
            assert read, "the browser has ended"
            self._held += read
        line, _, self._held = self._held.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, parameters: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.messages.append(str(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.messages.append(parameters["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.messages.append(str(parameters["args"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def open(self, page: Path, dark: bool = False, width: int = 1400, height: int = 1000) -> None:
        """Shows a file, and waits until its script has run."""
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url=page.as_uri())
        end = time.monotonic() + self._seconds
        while self.run("document.readyState") != "complete" or self.run("location.href").startswith("about:"):
            assert time.monotonic() < end, "the page is not complete"
            time.sleep(0.05)

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def picture(self, path: Path, whole: bool = False) -> None:
        """A PNG of what is to be seen, or of the whole page."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._clip(whole))
        path.write_bytes(base64.b64decode(data["data"]))

    def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}}
