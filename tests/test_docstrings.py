"""A docstring begins with its subject or its verb: one that begins by pointing at something else says nothing alone."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import prevail

import app

ROOTS = [Path(package.__path__[0]) for package in (app, prevail)]
POINTING = re.compile(
    r"(As|How|It|Likewise|Of|Same|Such|That|The same|These|They|This|Those|What|When|Where|Whether|Which|Who|Whose)\b"
)


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each text that stands alone: the docstrings of modules, classes, functions and attributes."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text.strip()


def test_docstrings_begin_with_their_subject() -> None:
    found = [
        f"{path.relative_to(root.parent)}:{line}: {text[:60]}"
        for root in ROOTS
        for path in sorted(root.rglob("*.py"))
        for line, text in docstrings(path)
        if POINTING.match(text)
    ]
    assert found == [], "\n".join(found)
