"""A docstring begins with its subject or its verb: one that begins by pointing at something else says nothing alone."""

import re
from pathlib import Path

import prevail

import app

ROOTS = [Path(package.__path__[0]) for package in (app, prevail)]
# Texts that stand alone: the docstrings of modules, classes, functions and attributes.
POINTING = re.compile(
    r'^ *r?"""\s*(As|How|It|Likewise|Of|Same|Such|That|The same|These|They|This|Those|What|When|Where|Whether|Which|Who'
    r"|Whose)\b.*",
    re.MULTILINE,
)


def test_docstrings_begin_with_their_subject() -> None:
    found = [
        f"{path.relative_to(root.parent)}: {one[0].strip()[:60]}"
        for root in ROOTS
        for path in sorted(root.rglob("*.py"))
        for one in POINTING.finditer(path.read_text())
    ]
    assert found == [], "\n".join(found)
