"""How much a file may hold. Small files can hold a lot, so all is counted before it is unpacked, or as it comes."""

from collections.abc import Sequence

from app.domain.errors import InvalidInput, TooLarge
from app.domain.inputs.labels import MOST_CLASSES

# As in JSON.
MOST_ROWS = 10_000_000
# 400 MB as doubles.
MOST_ENTRIES = 50_000_000
# Of a file once unpacked, its texts included.
MOST_BYTES = 2**29
# The classes and what may stand beside them.
MOST_COLUMNS = MOST_CLASSES + 24
# Different labels of a column: the classes, and as many that are to be ignored.
MOST_LABELS = 2 * MOST_CLASSES
# Of what describes the columns: names, types, places.
MOST_DESCRIPTION = 2**24


def check_rows(rows: int, columns: int) -> None:
    """Refuse more rows, or more rows of so many columns, than a request may have."""
    if rows > MOST_ROWS:
        raise too_large(f"at most {MOST_ROWS} rows, got {rows} or more")
    if rows * columns > MOST_ENTRIES:
        raise too_large(f"at most {MOST_ENTRIES} entries, got {rows} rows of {columns} columns")


def check_bytes(size: int, what: str) -> None:
    """Refuse what takes more room once it is unpacked than a request may have."""
    if size > MOST_BYTES:
        raise too_large(f"at most {MOST_BYTES} bytes {what}, got {size} or more")


def check_labels(count: int, column: str) -> None:
    """Refuse more different labels in a column than a request may have."""
    if count > MOST_LABELS:
        raise InvalidInput.at(
            "/data", "too_many_classes", f"expected at most {MOST_CLASSES} classes, got more in the column {column!r}"
        )


def check_description(size: int) -> None:
    """Refuse a description of the columns that is larger than any sensible one."""
    if not 0 <= size <= MOST_DESCRIPTION:
        raise too_large(f"a description of the columns of at most {MOST_DESCRIPTION} bytes, got {size}")


def check_names(names: Sequence[str]) -> None:
    """Refuse too many columns, and two of one name."""
    if len(names) > MOST_COLUMNS:
        raise too_large(f"at most {MOST_COLUMNS} columns, got {len(names)}")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput.at(
            "/data", "duplicate_column", f"expected columns with different names, got {twice!r} twice"
        )


def too_large(expected: str) -> TooLarge:
    """The error that says what may be, and what was counted."""
    return TooLarge(f"expected {expected} in the file", pointer="/data")
