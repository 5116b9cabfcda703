"""A browser for tests of pages: the Chromium of this machine, driven by Playwright; tests skip where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# Chromium's own sandbox does not start for root or in most containers; the pages under test are ours.
LAUNCH: dict[str, Any] = {"executable_path": CHROMIUM, "args": ["--no-sandbox"]}
LOCAL = ("file:", "blob:", "data:", "about:")
UNLOADED = "Failed to load resource"

# Words that begin on one line and end on another; those of more letters may be longer than their column.
BROKEN = """() => {
  const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode()); ) {
    if (node.parentElement.closest("script, style, code, pre, svg, option, .vh, [hidden]")) continue;
    const long = [...node.data.matchAll(/\\S{17,}/gu)];
    for (const match of node.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
      if (long.some((one) => one.index <= match.index && match.index < one.index + one[0].length)) continue;
      const range = document.createRange();
      range.setStart(node, match.index);
      range.setEnd(node, match.index + match[0].length);
      if (new Set([...range.getClientRects()].filter((one) => one.width).map((one) => Math.round(one.top))).size > 1) found.push(match[0]);
    }
  }
  return found;
}"""


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    """Playwright itself. For a module only: while it runs, no test can have an event loop of its own."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with api.sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """One Chromium for the tests of a module."""
    running = playwright.chromium.launch(**LAUNCH)
    yield running
    running.close()


@contextmanager
def watched(context: BrowserContext, server: str | None = None) -> Iterator[BrowserContext]:
    """A context without a network whose pages may print no message, throw no error and ask for nothing from outside.

    Of a ``server`` on loopback they may ask, and Chromium may say that it did not answer.
    """
    seen: list[str] = []
    allowed, spared = ((*LOCAL, server), (UNLOADED,)) if server else (LOCAL, ())

    def watch(page: Page) -> None:
        page.set_default_timeout(5000)
        page.on("console", lambda message: None if message.text.startswith(spared) else seen.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: seen.append(f"error: {error}"))
        page.on("request", lambda request: None if request.url.startswith(allowed) else seen.append(f"request: {request.url}"))

    context.on("page", watch)
    for page in context.pages:
        watch(page)
    context.set_offline(server is None)
    yield context
    context.close()
    assert not seen, seen


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """A fresh page, watched as ``watched`` says."""
    with watched(browser.new_context(viewport={"width": 1400, "height": 900})) as context:
        yield context.new_page()


def serious_findings(page: Page, *rules: str) -> list[str]:
    """What axe-core finds on the page as it stands that is serious or critical; by all of its rules if none is named."""
    from axe_playwright_python.sync_playwright import Axe

    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found = Axe().run(page, options=options).response["violations"]
    return [
        f"{one['id']}: {node['html'][:120]} {node.get('failureSummary', '')}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def broken_words(page: Page) -> list[str]:
    """The words that stand in no more than sixteen signs without a space and are broken in their middle on the page as it stands."""
    found: list[str] = page.evaluate(BROKEN)
    return found


def saved(page: Page, press: str, folder: Path) -> Path:
    """The file that a press of the button of that name saves."""
    with page.expect_download() as download:
        page.get_by_role("button", name=press).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path
