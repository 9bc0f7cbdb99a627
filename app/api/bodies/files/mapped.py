"""A file whose columns have other names than the service gives them."""

from collections.abc import Mapping, Sequence

from app.api.bodies.files.table import Table, TableFile
from app.domain.errors import Fault, InvalidInput
from app.domain.inputs.labels import listed
from app.domain.inputs.names import normalized

# Ours to the file's; a list has one column for every class.
Mapped = Mapping[str, str | Sequence[str]]
_WHERE = "/input/columns"


def mapped_file(file: TableFile, columns: Mapped, classes: Sequence[str] | None, *, apart: bool = False) -> TableFile:
    """The file with the names of the service: what is named is there, everything else is left aside.

    Args:
        file: As it came.
        columns: By the name of the service the name in the file; of `probabilities` and `scores` also a list, one for
            every class.
        classes: The classes that a list is about.
        apart: Several lists may be about them: a column is called by its list and its class, as `y_true.cat`.

    Raises:
        InvalidInput: a column is not there, or a list does not have one for every class.
    """
    names = _names(columns, classes, apart=apart)
    absent = [(ours, theirs) for ours, theirs in names.items() if theirs not in file.names]
    if absent:
        have = f"there are only {listed(file.names)}" if file.names else "there are none"
        raise InvalidInput([Fault(_WHERE, "missing_column", f"expected a column {one!r}, {have}") for _, one in absent])

    def load(labels: Sequence[str], numbers: Sequence[str]) -> Table:
        table = file.load([names[name] for name in labels], [names[name] for name in numbers])
        return Table(
            rows=table.rows,
            labels=lambda name: table.labels(names[name]),
            ids=lambda name: table.ids(names[name]),
            numbers=lambda name: table.numbers(names[name]),
            matrix=lambda name: table.matrix(names[name]),
            flags=lambda name: table.flags(names[name]),
        )

    return TableFile(list(names), load)


def _names(columns: Mapped, classes: Sequence[str] | None, *, apart: bool) -> dict[str, str]:
    found: dict[str, str] = {}
    for ours, theirs in columns.items():
        if isinstance(theirs, str):
            found[ours] = theirs
            continue
        if classes is None or len(classes) != len(theirs):
            have = "they are not declared" if classes is None else f"there are {len(classes)}"
            detail = f"expected a column for each class that labels declares, got {len(theirs)} and {have}"
            raise InvalidInput.at(f"{_WHERE}/{ours}", "wrong_length", detail)
        start = f"{ours}." if apart else ""
        found |= {f"{start}{normalized(label)}": column for label, column in zip(classes, theirs, strict=True)}
    return found
