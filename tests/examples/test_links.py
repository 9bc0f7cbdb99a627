"""Links of the documents lead somewhere, and the site has a place for every page."""

import json
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from tests.bank import each
from tests.examples.documents import FENCE, ROOT, documents

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def anchors(path: Path) -> set[str]:
    """Headings as GitHub and MyST name them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each("document", list(documents()))
def test_links_lead_somewhere(document: str) -> None:
    page = ROOT / document
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def test_every_page_has_a_place_in_the_site() -> None:
    trees = (ROOT / "docs" / "index.md").read_text()
    placed = set(re.findall(r"^(?:.+<)?([a-z-]+(?:/[a-z-]+)?)>?$", trees, re.MULTILINE))
    docs = ROOT / "docs"
    found = [*docs.glob("*.md"), *docs.glob("reference/*.md")]
    pages = {path.relative_to(docs).with_suffix("").as_posix() for path in found} - {"index"}
    assert pages - placed == set()
    parts = re.findall(r"^:caption: (.+)$", trees, re.MULTILINE)
    assert parts == ["Start", "How to", "Explanation", "Reference"]


def site() -> ModuleType:
    """The settings of the site, which Sphinx reads as a module."""
    found = spec_from_file_location("conf", ROOT / "docs" / "conf.py")
    assert found is not None
    assert found.loader is not None
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.slow  # the site's libraries are there with the slow tests only
def test_the_http_reference_has_every_operation() -> None:
    document = json.loads((ROOT / "docs" / "openapi.json").read_text())
    reference = site().http_reference(document)
    for path, methods in document["paths"].items():
        for method, said in methods.items():
            if "operationId" in said:
                assert f"### `{method.upper()} {path}`" in reference
                assert f"`{said['operationId']}`" in reference
