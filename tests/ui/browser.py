"""Finds a browser for the tests of pages, or installs one; without any they fail.

`TEST_BROWSER` names one. Else one of the usual names is taken, or that of Playwright. Where there is none
Debian's is installed, or Playwright's where that cannot be had.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, BrowserType, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
# Not `PREVAIL_…`: tests put away what begins with that.
NAMED = os.environ.get("TEST_BROWSER")
# Where pictures of pages are to be kept: `make screens`.
KEPT_IN = os.environ.get("SCREENS_FOLDER")


def found(kind: BrowserType) -> str:
    """The path of a browser.

    Raises:
        RuntimeError: there is none, and none could be installed.
    """
    if NAMED:
        return NAMED
    for install in (None, _of_the_system, _of_playwright):
        if install is not None:
            install()
        known = [*(shutil.which(name) for name in NAMES), str(kind.executable_path)]
        path = next((one for one in known if one and Path(one).exists()), None)
        if path is not None:
            return path
    raise RuntimeError(
        "no browser for the tests of pages: install chromium (apt-get install chromium), or name one in TEST_BROWSER"
    )


def _of_playwright() -> None:
    subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False, timeout=300)


def _of_the_system() -> None:
    """Debian's, for whoever may install it."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "chromium"]):
        subprocess.run(["apt-get", *words], check=False, timeout=600, env=environment)  # noqa: S607 - the system's own


@contextmanager
def opened() -> Iterator[Browser]:
    """A browser without windows, until the end of the block."""
    with sync_playwright() as playwright:
        # Its own sandbox is not for root, as whom tests in containers run.
        root = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=found(playwright.chromium), args=root)
        yield browser
        browser.close()


if __name__ == "__main__":
    # Before the tests, which are run by several processes.
    with sync_playwright() as started:
        print(f"the tests of pages are shown by {found(started.chromium)}")
