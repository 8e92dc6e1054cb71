"""A Chromium for tests of pages, and pages whose script errors fail the test."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

__all__ = ["CHROMIUM", "checked_pages", "launch_chromium"]

#: Path of the installed Chromium, or None.
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def launch_chromium() -> Iterator[Any]:
    """Yield a Chromium without a window; skip the test if Playwright or Chromium is missing."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="no Playwright: pip install playwright (extra test)"
    )
    if CHROMIUM is None:
        pytest.skip("no Chromium: apt-get install chromium")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def checked_pages(browser: Any) -> Iterator[Callable[..., Any]]:
    """Yield a function that opens an address in a new page of the browser.

    At the end all pages are closed, and any script error in a page is an `AssertionError`. Keywords
    of the function are options of the page, such as `viewport`.
    """
    errors: list[str] = []
    pages: list[Any] = []

    def open_address(address: str, **options: Any) -> Any:
        page = browser.new_page(**options)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address)
        pages.append(page)
        return page

    yield open_address
    for page in pages:
        page.close()
    assert errors == []
