"""Pictures that the documentation shows are there, and none is there that nobody shows."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
# In the page, or behind a link of it.
_SHOWN = re.compile(r"!?\[[^\]]+\]\(([^)\s]+\.(?:png|svg))\)|(?:src|srcset)=\"([^\"]+)\"")


def shown() -> set[Path]:
    """All pictures that pages refer to; each has words for those who do not see it."""
    found = set()
    of_users = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "reference").glob("*.md")]
    for page in (ROOT / "README.md", *sorted(of_users), *sorted((ROOT / "examples").rglob("*.md"))):
        for inside, outside in _SHOWN.findall(page.read_text()):
            address = inside or outside
            if not address.startswith(("http:", "https:", "data:")):
                found.add((page.parent / address).resolve())
    return found


def test_pictures_that_are_referred_to_exist() -> None:
    pictures = shown()
    assert len(pictures) > 20
    assert not sorted(str(one) for one in pictures if not one.is_file())


def test_screens_that_are_committed_are_shown() -> None:
    committed = set((ROOT / "docs" / "screens").glob("*.png"))
    assert committed
    assert committed <= shown()
