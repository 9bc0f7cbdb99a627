"""The documentation as a site: built whole, searched and filtered in a browser."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow


def test_the_site_finds_metrics_and_filters_them(tmp_path: Path) -> None:
    from tests.ui.browser import opened

    site = tmp_path / "site"
    build = [sys.executable, "-m", "sphinx", "-W", "-q", "-j", "2", "-b", "html", str(ROOT / "docs"), str(site)]
    subprocess.run(build, cwd=ROOT, check=True, timeout=300)
    with opened() as browser:
        page = browser.new_page()
        page.goto(f"file://{site}/index.html")
        picture = page.locator("article img").first
        assert picture.evaluate("image => image.complete && image.naturalWidth > 0")
        for asked in ("h_mean", "recall", "roc_auc"):
            page.goto(f"file://{site}/search.html?q={asked}")
            first = page.locator("#search-results li a").first
            first.wait_for()
            assert (first.get_attribute("href") or "").startswith(f"metrics/{asked}.html")
        page.goto(f"file://{site}/metrics/index.html")
        rows = page.locator("tbody tr:visible")
        every = rows.count()
        assert every > 300
        page.get_by_label("Filter metrics").fill("Macro f1")
        found = rows.all_inner_texts()
        assert 1 < len(found) < 12
        assert all("macro" in one.lower() and "f1" in one.lower() for one in found)
        # Headings without a row are gone with them.
        assert page.locator("article section section:visible").count() <= len(found)
        page.get_by_label("Filter metrics").fill("")
        assert rows.count() == every
