"""Visitors look at a page with a report, and record all problems.

Each visitor is a fresh browser profile without traces of other visitors.
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Frame, Page, Playwright, Request

_CHECKOUT = Path(__file__).resolve().parents[2]
SCREENSHOTS = _CHECKOUT / "build" / "screenshots"
_AXE = _CHECKOUT / "node_modules" / "axe-core" / "axe.min.js"
_HOSTS = {"127.0.0.1", "localhost"}

_WATCH = """
window.violations = [];
document.addEventListener('securitypolicyviolation', (event) =>
  window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
"""

# A browser may refuse storage to an embedded page; then the storage is empty.
_LEFT_BEHIND = """async () => {
  const stores = [
    () => Object.keys(localStorage),
    () => Object.keys(sessionStorage),
    () => document.cookie.split(';'),
    async () => (await indexedDB.databases()).map((database) => database.name),
    async () => (await globalThis.caches?.keys()) ?? [],
  ];
  const names = await Promise.all(stores.map(async (list) => {
    try { return await list(); } catch (error) { if (!(error instanceof DOMException)) throw error; return []; }
  }));
  return names.flat().filter(Boolean);
}"""


class BrowserMissing(Exception):
    """Chromium or axe is not installed; the message says what to run."""


def launch(playwright: Playwright) -> Browser:
    """Start Debian's headless Chromium, which resolves only the name of this machine.

    Raises:
        BrowserMissing: it is not installed.
    """
    path = shutil.which("chromium-headless-shell")
    if path is None:
        raise BrowserMissing("there is no `chromium-headless-shell`: run tests/debian-packages")
    rules = "MAP * ~NOTFOUND, " + ", ".join(f"EXCLUDE {host}" for host in sorted(_HOSTS))
    return playwright.chromium.launch(executable_path=path, args=["--no-sandbox", f"--host-resolver-rules={rules}"])


class Visitor:
    """A fresh profile with one page; `with visiting(...)` creates and closes it.

    Attributes:
        page: the customer's page.
        paths: methods and paths of all requests, to any host.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self._noted: list[str] = []
        self._forgiven: list[str] = []
        self.paths: list[str] = []
        page.context.on("console", self._note_message)
        page.context.on("weberror", lambda error: self._noted.append(f"uncaught: {error.error}"))
        page.context.on("request", self._note_request)

    def open(self, url: str, state: str = "ready") -> Frame:
        """Go to a page and return its report once it has reached a state."""
        self.page.goto(url)
        return self.report(state)

    def report(self, state: str = "ready") -> Frame:
        """Return the report, the page itself or its frame, once it is in a state."""
        if "/embed/" in self.page.main_frame.url:
            return self.arrived(self.page.main_frame, state)
        return self.framed("iframe", state)

    def framed(self, selector: str, state: str = "ready") -> Frame:
        """Return the report in one of the page's frames once it is in a state."""
        element = self.page.wait_for_selector(selector)
        frame = element.content_frame() if element else None
        if frame is None:
            raise AssertionError(f"{selector} is no frame")
        return self.arrived(frame, state)

    def arrived(self, frame: Frame, state: str) -> Frame:
        """Wait until a report is in a state, and return it."""
        # While its document is replaced, a frame has no element.
        frame.wait_for_function("(state) => document.documentElement?.dataset.state === state", arg=state)
        return frame

    @property
    def problems(self) -> list[str]:
        """Return all problems: console errors, refused resources, requests to other hosts, data left in the
        profile. A test that provokes a problem calls `forgive`."""
        return [noted for noted in self._noted if not any(re.search(pattern, noted) for pattern in self._forgiven)]

    def forgive(self, pattern: str) -> None:
        """Wait for a console message that matches, and ignore all matching ones as problems.

        The console follows after the page, and a page with two concurrent requests is refused twice.
        """
        while not any(re.search(pattern, noted) for noted in self._noted):
            self.page.context.wait_for_event("console")
        self._forgiven.append(pattern)

    def axe(self, frame: Frame) -> list[str]:
        """Return axe's findings in a report: a line for each element, with the violated rule."""
        if not _AXE.is_file():
            raise BrowserMissing(f"{_AXE} is missing: run `make install`")
        frame.evaluate(_AXE.read_text(encoding="utf-8"))
        found = frame.evaluate("async () => (await axe.run(document, {resultTypes: ['violations']})).violations")
        return [
            f"{rule['id']}: {node['html'][:200]} {node['failureSummary']}" for rule in found for node in rule["nodes"]
        ]

    def screenshot(self, name: str) -> None:
        """Save a picture of the whole page as build output."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        size = self.page.viewport_size
        assert size is not None
        # As high as the page: a frame is not painted below the window's edge.
        height = self.page.evaluate("document.documentElement.scrollHeight")
        self.page.set_viewport_size({"width": size["width"], "height": max(height, size["height"])})
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")
        self.page.set_viewport_size(size)

    def note_left_behind(self) -> None:
        """Add refused resources and stored data of the open documents to the problems."""
        for frame in self.page.frames:
            if not frame.url.startswith("http"):
                continue
            self._noted += [f"CSP: {violation}" for violation in frame.evaluate("window.violations ?? []")]
            self._noted += [f"stored: {name}" for name in frame.evaluate(_LEFT_BEHIND)]
        self._noted += [f"cookie: {cookie}" for cookie in self.page.context.cookies()]

    def _note_message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._noted.append(f"console: {message.text} {message.location.get('url', '')}")

    def _note_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        self.paths.append(f"{request.method} {parts.path}")
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname not in _HOSTS:
            self._noted.append(f"a request to another host: {request.url}")


@contextmanager
def visiting(browser: Browser, **options: Any) -> Iterator[Visitor]:
    """Yield a visitor; `options` are those of a browser context, such as locale, color_scheme and viewport."""
    settings = {"viewport": {"width": 1400, "height": 1000}, "locale": "en-US", "reduced_motion": "reduce", **options}
    context = browser.new_context(**settings)
    # Only the test's own timeout ends a wait, since the machine may be busy.
    context.set_default_timeout(0)
    context.add_init_script(_WATCH)
    visitor = Visitor(context.new_page())
    try:
        yield visitor
        visitor.note_left_behind()
    finally:
        context.close()
