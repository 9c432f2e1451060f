"""A real Chromium for the tests: found, or installed where that is possible, or a reason to skip.

`POLYURN_NO_INSTALL=1` keeps the tests from installing anything.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

_ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
_AXE = "axe-core@4.10.3"


def chromium():
    """A driver of headless Chromium that keeps its console and its requests; quit it when done."""
    selenium = pytest.importorskip("selenium", reason="selenium is not installed")
    assert selenium
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    browser, driver = _browser()
    options = Options()
    options.binary_location = browser
    for argument in _ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service(driver), options=options)


def axe(folder: Path) -> str:
    """The text of axe-core, from the npm registry."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not there to fetch axe-core")
    command = ["npm", "install", "--silent", "--no-save", "--prefix", str(folder), _AXE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    place = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not place.exists():
        pytest.skip(f"axe-core cannot be fetched: {done.stderr.strip()[-200:]}")
    return place.read_text(encoding="utf-8")


def _browser():
    found = _found()
    if None in found:
        _install()
        found = _found()
    if None in found:
        pytest.skip("chromium and chromium-driver are not there")
    return found


def _found():
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    return browser, shutil.which("chromedriver")


def _install():
    if os.environ.get("POLYURN_NO_INSTALL"):
        pytest.skip("chromium is not there, and POLYURN_NO_INSTALL is set")
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        pytest.skip("chromium is not there, and only root with apt-get can install it")
    for command in (["update"], ["install", "-y", "chromium", "chromium-driver"]):
        subprocess.run(["apt-get", "-q", *command], capture_output=True, timeout=900, check=False)
