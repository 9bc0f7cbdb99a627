"""Conditions on rows: text that becomes an expression of pyarrow, by a grammar and nothing else."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache, reduce
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from lark import Lark, Token, Tree, UnexpectedInput

from app.api.bodies.files.table import is_text, plain
from app.domain.errors import InvalidInput
from app.domain.inputs.labels import listed, shown

WHERE: Final = "/input/data/filter"
LONGEST: Final = 4000
_DEEPEST: Final = 50
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition whose columns are not looked up yet."""

    tree: Tree[Token]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that it is about."""
        return tuple(dict.fromkeys(_name(node) for node in self.tree.find_data("column")))

    def bound(self, schema: pa.Schema, meant: Mapping[str, pa.DataType] = MappingProxyType({})) -> pc.Expression:
        """The condition on rows of a schema; what it compares with nothing there is not true. Of columns of texts that
        say values of other types, these are ``meant``.

        Raises:
            InvalidInput: a column is not there, or is compared with what it never is.
        """
        return _bound(self.tree, schema, meant)


def read_filter(text: str) -> Filter:
    """A condition such as `day >= '2026-01-01' and (country in ('ch', 'li') or not vip = true)`.

    Raises:
        InvalidInput: it is none, or one of many levels.
    """
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        # None at the end of the text, whatever its type says.
        place: Any = error.pos_in_stream
        raise InvalidInput.at(
            WHERE,
            "invalid_filter",
            "expected comparisons of columns, such as day >= '2026-01-01' and score is not null, got "
            f"something else at character {max(place or 0, 0)}",
        ) from None
    level: list[Any] = [tree]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in node.children if isinstance(child, Tree)]
        if not level:
            return Filter(tree)
    raise InvalidInput.at(WHERE, "invalid_filter", f"expected at most {_DEEPEST} levels of brackets and `not`")


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("filters.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", maybe_placeholders=False)


def _bound(node: Tree[Token], schema: pa.Schema, meant: Mapping[str, pa.DataType]) -> pc.Expression:
    match node.data:
        case "any":
            return reduce(operator.or_, [_bound(child, schema, meant) for child in _trees(node)])
        case "all":
            return reduce(operator.and_, [_bound(child, schema, meant) for child in _trees(node)])
        case "negated":
            return ~_bound(_trees(node)[0], schema, meant)
    names = [*map(_name, node.find_data("column"))]
    for name in names:
        if name not in schema.names:
            detail = f"expected columns of the data, there is no {name!r}, only {listed(schema.names)}"
            raise InvalidInput.at(WHERE, "missing_column", detail)
    columns = pa.schema([schema.field(name) for name in dict.fromkeys(names)])
    try:
        found = _compared(node, columns, meant)
        # Arrow knows which types compare with each other; some it tells only where there is a row.
        pa.table([pa.nulls(1, column.type) for column in columns], schema=columns).filter(found)
    except (pa.ArrowException, ValueError, ArithmeticError):
        holds = " and ".join(f"{shown(column.name)} holds {column.type}" for column in columns)
        _, *got = node.scan_values(lambda one: isinstance(one, Token) and one.type != "COMPARISON")
        detail = f"expected what compares with its column ({holds}; days as '2026-01-31'), got {', '.join(got)}"
        raise InvalidInput.at(WHERE, "wrong_type", detail) from None
    return found


def _compared(node: Tree[Token], columns: pa.Schema, meant: Mapping[str, pa.DataType]) -> pc.Expression:
    """One comparison. Raises ValueError, ArithmeticError: a literal is none of a column's type."""

    def read(one: Tree[Token]) -> pc.Expression:
        return pc.field(_name(one)).cast(meant[_name(one)]) if _name(one) in meant else pc.field(_name(one))

    first, *others = _trees(node)
    name, column = _name(first), read(first)
    kind = plain(meant.get(name, columns.field(name).type))
    values: list[Any] = [read(one) if one.data == "column" else _scalar(one, kind) for one in others]
    match node.data.removeprefix("not_"):
        case "absent":
            found = pc.field(name).is_null()
        case "between":
            found = (column >= values[0]) & (column <= values[1])
        case "among":
            found = reduce(operator.or_, [column == value for value in values])
        case "like" if is_text(kind):
            found = pc.match_like(column.cast(pa.large_string()), _text(node))
        case "like":
            raise ValueError("only texts have patterns")
        case _:
            found = _COMPARISONS[str(node.children[1])](column, values[0])
    return ~found if node.data.startswith("not_") else found


def _trees(node: Tree[Token]) -> list[Tree[Token]]:
    return [child for child in node.children if isinstance(child, Tree)]


def _name(column: Tree[Token]) -> str:
    token = column.children[0]
    assert isinstance(token, Token)  # noqa: S101 - so says the grammar
    return token[1:-1].replace('""', '"') if token.type == "QUOTED" else str(token)


def _scalar(literal: Tree[Token], kind: pa.DataType) -> pa.Scalar:
    """A literal as a value, beside a column of this type."""
    written = literal.data
    if written in ("true", "false"):
        return pa.scalar(written == "true")
    if written == "text":
        text = _text(literal)
        return _moment(text, kind) if pa.types.is_date(kind) or pa.types.is_timestamp(kind) else pa.scalar(text)
    number = str(literal.children[0])
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(number))
    return pa.scalar(int(number), pa.int64()) if number.lstrip("+-").isdigit() else pa.scalar(float(number))


def _text(node: Tree[Token]) -> str:
    """The last part of a node, which is a text in quotes."""
    return str(node.children[-1])[1:-1].replace("''", "'")


def _moment(text: str, kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_date(kind):
        return pa.scalar(date.fromisoformat(text), kind)
    moment = datetime.fromisoformat(text)
    if kind.tz is None and moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    elif kind.tz is not None and moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return pa.scalar(moment, kind)
