"""Chromium driven against the real server. Every page that a test opens is watched: an error on
the console, a violation of the policy or a request to another host fails the test.

Without Chromium the tests are skipped; with NOTEWIRE_REQUIRE_BROWSER=1 they fail.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from django.conf import settings as django_settings
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from chat.providers.base import Provider
from chat.providers.catalogue import Catalogue, ResolvedModel
from chat.types import Completion, Delta, ModelRequest, TextDelta
from tests.conftest import Server

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_collection_modifyitems(items) -> None:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for a module: Playwright's loop must be gone before asynchronous tests run."""
    if CHROMIUM is None:
        reason = "Chromium is not installed (on Debian: apt-get install chromium)"
        if os.environ.get("NOTEWIRE_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    arguments = [*ARGUMENTS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Playwright drives its own loop in this thread; Django must not take it for its caller.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()


@dataclass
class Watch:
    """What no page may do, in the order in which it happened. Tests may take away what they
    provoked themselves, or forgive it beforehand."""

    host: str
    faults: list[str] = field(default_factory=list)
    forgiven: str = ""

    def page(self, page: Page) -> None:
        page.on("console", lambda message: self._console(message.type, message.text))
        page.on("pageerror", lambda error: self.faults.append(f"uncaught: {error}"))
        page.on("request", lambda request: self._request(request.url))

    def _console(self, kind: str, text: str) -> None:
        if self.forgiven and self.forgiven in text:
            return
        if kind in ("error", "warning"):
            self.faults.append(f"console {kind}: {text}")

    def _request(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != self.host:
            self.faults.append(f"request to {parts.netloc}")


@pytest.fixture
def watch(server: Server) -> Iterator[Watch]:
    watch = Watch(urlsplit(server.url).netloc)
    yield watch
    assert not watch.faults


@pytest.fixture
def open_context(
    browser: Browser, server: Server, watch: Watch
) -> Iterator[Callable[..., BrowserContext]]:
    """Make a browser context of a person who is logged in, or of nobody."""
    contexts: list[BrowserContext] = []

    def make(client=None, **options) -> BrowserContext:
        context = browser.new_context(base_url=server.url, **options)
        context.set_default_timeout(15_000)
        context.on("page", watch.page)
        if client is not None:
            session = client.cookies[django_settings.SESSION_COOKIE_NAME].value
            context.add_cookies(
                [{"name": django_settings.SESSION_COOKIE_NAME, "value": session, "url": server.url}]
            )
        contexts.append(context)
        return context

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def page(open_context, client_of, user):
    """A page of the user ``ada``, logged in."""
    return open_context(client_of(user)).new_page()


class Paced:
    """A provider that says its parts one at a time: the first at once, each next on ``go_on``."""

    name = "paced"

    def __init__(self, *parts: str) -> None:
        self.parts = parts
        self._allowed = 0
        self._wake: Callable[[], object] = bool

    async def stream(self, request: ModelRequest) -> AsyncIterator[tuple[Delta, ...]]:
        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        self._wake = lambda: loop.call_soon_threadsafe(woken.set)
        for said, part in enumerate(self.parts):
            while said > self._allowed:
                await woken.wait()
                woken.clear()
            yield (TextDelta(part),)
        yield (Completion(text="".join(self.parts)),)

    def go_on(self) -> None:
        self._allowed += 1
        self._wake()


@pytest.fixture
def answer_with(monkeypatch) -> Callable[[Provider], None]:
    """Let this provider answer whatever model is asked for."""

    def choose(provider: Provider) -> None:
        async def resolve(self, reference=None):
            return ResolvedModel(provider, "m")

        monkeypatch.setattr(Catalogue, "resolve", resolve)

    return choose
