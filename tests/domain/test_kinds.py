"""One declaration of a kind: the documentation and the client say the same of its columns."""

import re
from pathlib import Path

import pytest
from prevail.uploads import bodies, inputs

from app.domain.inputs.kind import Input
from app.domain.inputs.kinds import KINDS

PAGE = (Path(__file__).parents[2] / "docs" / "inputs.md").read_text()
# A row of the table of columns: the kind, and the names in either column.
ROWS = {
    kind: [{name.removesuffix(".<label>") for name in re.findall(r"`([^`]+)`", cell)} for cell in cells.split("|")]
    for kind, cells in re.findall(r"^\| `([a-z]+)` \| ([^|]+\|[^|]*)\|$", PAGE, flags=re.MULTILINE)
}


def test_every_kind_with_columns_has_a_row() -> None:
    assert {*ROWS} == {name for name, kind in KINDS.items() if kind.file()}


@pytest.mark.parametrize("kind", [kind for kind in KINDS.values() if kind.file()], ids=lambda kind: kind.kind)
def test_the_row_has_the_columns_of_the_declaration(kind: type[Input]) -> None:
    needed, optional = ROWS[kind.kind]
    assert needed == {one.name for one in kind.file().values() if one.needed}
    assert optional - {"feature."} == {one.name for one in kind.file().values() if not one.needed}


def test_members_of_one_name_are_called_alike_in_files() -> None:
    for member in {name for kind in KINDS.values() for name in kind.file()}:
        assert len({kind.file()[member].name for kind in KINDS.values() if member in kind.file()}) == 1, member


@pytest.mark.parametrize(("member", "kind"), inputs.KINDS.items())
def test_the_client_calls_columns_as_the_service_does(member: str, kind: str) -> None:
    declared = {name: one.name for name, one in KINDS[kind].file().items()}
    assert member in declared
    assert {name: bodies.COLUMNS[name] for name in declared} == declared
