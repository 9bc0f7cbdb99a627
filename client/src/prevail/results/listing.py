"""Lists, and answers that have no more than their JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prevail.results.answer import Answer
from prevail.results.html import shown, table_html


class Facts(Answer):
    """An answer as it came: its members are items, as in a dictionary."""

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    def __contains__(self, name: object) -> bool:
        return name in self.data

    def summary(self) -> str:
        """A line for every member."""
        return "\n".join(f"{name:18}  {_short(value)}" for name, value in self.data.items())

    def rows(self) -> Iterator[Sequence[Any]]:
        """A line for every member."""
        return ((name, _short(value)) for name, value in self.data.items())

    def _repr_html_(self) -> str:
        return table_html(("name", "value"), self.rows())


class Listing(Answer):
    """Items of a list, all pages of it up to the number that was asked for.

    Attributes:
        is_complete: Are there no more?
    """

    def __init__(self, items: Sequence[Mapping[str, Any]], *, is_complete: bool = True) -> None:
        super().__init__({"items": [*items]})
        self.items = [*items]
        self.is_complete = is_complete

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.items)

    def __getitem__(self, place: int) -> Mapping[str, Any]:
        return self.items[place]

    @property
    def columns(self) -> Sequence[str]:  # type: ignore[override]
        """The members of the items; of those that have members of their own, these: ``model.name``."""
        return list(dict.fromkeys(name for one in self.items for name in flattened(one)))

    def rows(self) -> Iterator[Sequence[Any]]:
        """A line for every item."""
        columns = self.columns
        for one in self.items:
            flat = flattened(one)
            yield [flat.get(name) for name in columns]

    def summary(self) -> str:
        """The beginning as a table."""
        if not self.items:
            return "nothing"
        lines = table_text(self.columns, self.rows())
        return lines if self.is_complete else f"{lines}\nand more: ask with a higher limit"


def flattened(item: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The members of an item and of the objects in it, each with a name."""
    found: dict[str, Any] = {}
    for name, value in item.items():
        if isinstance(value, Mapping) and value:
            found |= flattened(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = ", ".join(map(_short, value)) if isinstance(value, list) else value
    return found


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 100 else f"{text[:97]}..."


def table_text(columns: Sequence[str], rows: Iterator[Sequence[Any]] | Sequence[Sequence[Any]]) -> str:
    """A table for a terminal; what is the same everywhere and empty is left out."""
    lines = [[visible(_plain(cell)) for cell in row] for row in rows]
    kept = [place for place in range(len(columns)) if any(line[place] not in ("", "-") for line in lines)]
    table = [[columns[place] for place in kept], *([line[place] for place in kept] for line in lines)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in table)


def _plain(cell: Any) -> str:
    if isinstance(cell, float):
        return shown(cell)
    return "-" if cell is None else _short(cell)


def visible(text: str) -> str:
    """Text with what is not seen written out: names are data, and do nothing to a terminal."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
