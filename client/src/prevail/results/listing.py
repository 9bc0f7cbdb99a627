"""Lists, and answers that have no more than their JSON."""

import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill
from typing import Any, Final

from prevail.errors import PrevailError
from prevail.results.answer import Answer
from prevail.results.html import table_html
from prevail.results.words import cell_text, flattened, is_rule, rule_text, table_text, visible
from prevail.wire.steps import Call


class Facts(Answer):
    """An answer as it came: its members are items, as in a dictionary.

    As a table it is the numbers in it, where it has a table of them: the points of a curve, a line for every metric.
    """

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    def __contains__(self, name: object) -> bool:
        return name in self.data

    @property
    def columns(self) -> Sequence[str]:
        """The columns of its table; ``name`` and ``value`` where it has none."""
        return self._table()[0]

    def rows(self) -> Iterator[Sequence[Any]]:
        """The lines of its table; a line for every member where it has none."""
        return iter(self._table()[1])

    def _table(self) -> "Table":
        return next((table for _, table in _tables(self.data)), (("name", "value"), [*self.facts()]))

    def facts(self) -> Iterator[Sequence[Any]]:
        """A line for every member that is no table."""
        inside = {name for names, _ in _tables(self.data) for name in names}
        for name, value in flattened({name: one for name, one in self.data.items() if name not in inside}).items():
            if name not in inside:
                yield name, value if isinstance(value, int | float | None) else " ".join(str(value).split())

    def summary(self) -> str:
        """A line for every member, and its tables."""
        facts = [*self.facts()]
        width = max((len(str(name)) for name, _ in facts), default=0)
        texts = (visible(value) if isinstance(value, str) else cell_text(value) for _, value in facts)
        lines = [self._wrapped(f"{name:{width}}  ", text) for (name, _), text in zip(facts, texts, strict=True)]
        parts = ["\n".join(lines)] if facts else []
        tables = [*_tables(self.data)]
        for names, (columns, rows) in tables:
            if len(rows) > _MOST_LINES and len(tables) > 1:
                # Such as the curve that a threshold was found on.
                parts.append(f"{', '.join(names)}: {len(rows):,} lines, in its JSON")
                continue
            more = f"\nand {len(rows) - _MOST_LINES:,} more lines" if len(rows) > _MOST_LINES else ""
            parts.append(f"{', '.join(names)}:\n{table_text(columns, rows[:_MOST_LINES])}{more}")
        return "\n\n".join(parts)

    @staticmethod
    def _wrapped(name: str, text: str) -> str:
        return fill(
            name + text, _WIDTH, subsequent_indent=" " * len(name), break_long_words=False, break_on_hyphens=False
        )

    def title(self) -> str:
        """The names of what it has."""
        return ", ".join(self.data)

    def _repr_html_(self) -> str | None:
        html = table_html(("name", "value"), self.facts())
        return html + "".join(
            table_html(columns, rows, ", ".join(names)) for names, (columns, rows) in _tables(self.data)
        )


class Figure(Facts):
    """A figure as a Vega-Lite specification, which a notebook draws."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:  # noqa: ARG002 - of IPython
        found: dict[str, Any] = {"text/plain": self.summary()}
        version = re.search(r"/v(\d+)", str(self.data.get("$schema", "")))
        found[f"application/vnd.vegalite.v{version[1] if version else 6}+json"] = self.data
        picture = self.svg()
        if picture is not None:
            found["image/svg+xml"] = picture
        return found

    def svg(self) -> str | None:
        """The figure as SVG, as the service draws it; None where it draws none."""
        if self.again is None or self._ask is None:
            return None
        if not hasattr(self, "_svg"):
            drawn = Call("GET", f"{self.again.path.removesuffix('.json')}.svg", self.again.params)
            try:
                self._svg: str | None = self._ask(drawn)
            except PrevailError:  # without the extra that draws the specification is all there is
                self._svg = None
        return self._svg

    def rows(self) -> Iterator[Sequence[Any]]:
        """The data that it shows, line by line."""
        columns = self.columns
        return ([one.get(name) for name in columns] for one in self._points())

    @property
    def columns(self) -> Sequence[str]:
        """The members of its data."""
        return list(dict.fromkeys(name for one in self._points() for name in one))

    def _points(self) -> list[Mapping[str, Any]]:
        data = self.data.get("data")
        values = data.get("values") if isinstance(data, Mapping) else None
        return [one for one in values if isinstance(one, Mapping)] if isinstance(values, list) else []

    def title(self) -> str:
        """The description of what it shows."""
        return str(self.data.get("description") or "a figure")

    def summary(self) -> str:
        """The description of what it shows."""
        return self.title()

    def __str__(self) -> str:
        return self.title()

    def _repr_html_(self) -> str | None:
        return self.svg()


Table = tuple[Sequence[str], list[Sequence[Any]]]
_MOST_LINES: Final = 20
_WIDTH: Final = 100


def _tables(data: Mapping[str, Any]) -> Iterator[tuple[Sequence[str], Table]]:
    """The tables in an answer, each with the names of the members that it is made of."""
    if data and all(isinstance(one, Mapping) and "value" in one for one in data.values()):
        yield [*data], _lines([{"name": name, **flattened(one)} for name, one in data.items()])
        return
    series = {name: value for name, value in _leaves(data) if _is_series(value)}
    longest = max(map(len, series.values()), default=0)
    columns = {name: value for name, value in series.items() if len(value) == longest}
    if len(columns) > 1:
        yield [*columns], ([*columns], [*zip(*columns.values(), strict=True)])
    for name, value in data.items():
        if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            yield [name], _lines([_line(one) for one in value])
        elif isinstance(value, list) and value and all(map(_is_series, value)):
            if all(one is None or float(one).is_integer() for row in value for one in row):
                value = [[None if one is None else int(one) for one in row] for row in value]
            labels = [*map(str, data.get("labels") or range(len(value[0])))]
            made_of = [name, "labels"] if "labels" in data else [name]
            yield made_of, (["", *labels], [[label, *row] for label, row in zip(labels, value, strict=True)])
        elif isinstance(value, Mapping) and value and all(isinstance(one, Mapping) for one in value.values()):
            yield [name], _lines([{name.removesuffix("s"): key, **flattened(one)} for key, one in value.items()])


def _line(one: Mapping[str, Any]) -> dict[str, Any]:
    """An item as a line; a rule is said first."""
    return {"rule": rule_text(one), **flattened(one)} if is_rule(one) else flattened(one)


def _lines(lines: list[dict[str, Any]]) -> Table:
    names = list(dict.fromkeys(one for line in lines for one in line))
    return names, [[line.get(one) for one in names] for line in lines]


def _leaves(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The members of an answer and of the objects in it, lists as they are."""
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{one}", each) for one, each in _leaves(value))
        else:
            yield name, value


def _is_series(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 1 and all(isinstance(one, int | float | None) for one in value)


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
    def columns(self) -> Sequence[str]:
        """The members of the items; of those that have members of their own, these: ``model.name``."""
        return list(dict.fromkeys(name for one in self.items for name in flattened(one)))

    def rows(self) -> Iterator[Sequence[Any]]:
        """A line for every item."""
        columns = self.columns
        for one in self.items:
            flat = flattened(one)
            yield [flat.get(name) for name in columns]

    def title(self) -> str:
        """Number of items."""
        return f"{len(self.items):,} item{'s' * (len(self.items) != 1)}" + (
            "" if self.is_complete else " and more: ask with a higher limit"
        )

    def summary(self) -> str:
        """The items as a table."""
        if not self.items:
            return "nothing"
        lines = table_text(self.columns, self.rows())
        return lines if self.is_complete else f"{lines}\n{self.title()}"
