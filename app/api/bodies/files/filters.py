"""Conditions on rows: text that becomes an expression of pyarrow, by a grammar and nothing else."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache, reduce
from pathlib import Path
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
_MOST_WHOLE: Final = 2**63


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition whose columns are not looked up yet."""

    tree: Tree[Token]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that it is about."""
        return tuple(dict.fromkeys(_name(node) for node in self.tree.find_data("column")))

    def bound(self, schema: pa.Schema) -> pc.Expression:
        """The condition on rows of a schema; what it compares with nothing there is not true.

        Raises:
            InvalidInput: a column is not there, or is compared with what it never is.
        """
        return _bound(self.tree, schema)


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


def _bound(node: Tree[Token], schema: pa.Schema) -> pc.Expression:
    match node.data:
        case "any":
            return reduce(operator.or_, [_bound(child, schema) for child in _trees(node)])
        case "all":
            return reduce(operator.and_, [_bound(child, schema) for child in _trees(node)])
        case "negated":
            return ~_bound(_trees(node)[0], schema)
    name, kind = _column(_trees(node)[0], schema)
    column = pc.field(name)
    match node.data:
        case "compared_columns":
            other, others = _column(_trees(node)[1], schema)
            if _family(kind) != _family(others):
                raise _unlike(name, kind, f"a column of the same type, {shown(other)} holds {others},")
            return _COMPARISONS[str(node.children[1])](column, pc.field(other))
        case "between" | "not_between":
            low, high = (_scalar(literal, name, kind) for literal in _trees(node)[1:])
            found = (column >= low) & (column <= high)
            return found if node.data == "between" else ~found
        case "like" | "not_like":
            if not is_text(plain(kind)):
                raise _unlike(name, kind, "no pattern of texts")
            found = pc.match_like(column.cast(pa.large_string()), _text(node))
            return found if node.data == "like" else ~found
        case "absent":
            return column.is_null()
        case "present":
            return ~column.is_null()
        case "compared":
            return _COMPARISONS[str(node.children[1])](column, _scalar(node.children[2], name, kind))
    values = [_scalar(child, name, kind) for child in _trees(node)[1].children]
    found = reduce(operator.or_, [column == value for value in values])
    return found if node.data == "among" else ~found


def _column(node: Tree[Token], schema: pa.Schema) -> tuple[str, pa.DataType]:
    name = _name(node)
    if name not in schema.names:
        raise InvalidInput.at(
            WHERE, "missing_column", f"expected columns of the data, there is no {name!r}, only {listed(schema.names)}"
        )
    return name, schema.field(name).type


def _family(kind: pa.DataType) -> str:
    """Types whose values compare with each other have one name."""
    kind = plain(kind)
    if is_text(kind):
        return "text"
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return "number" if number else str(kind)


def _trees(node: Tree[Token]) -> list[Tree[Token]]:
    return [child for child in node.children if isinstance(child, Tree)]


def _name(column: Tree[Token]) -> str:
    token = column.children[0]
    assert isinstance(token, Token)  # noqa: S101 - so says the grammar
    return token[1:-1].replace('""', '"') if token.type == "QUOTED" else str(token)


def _scalar(literal: Any, name: str, kind: pa.DataType) -> pa.Scalar:
    """A literal as a value that the column can have."""
    kind = plain(kind)
    written = literal.data
    if pa.types.is_boolean(kind):
        if written in ("true", "false"):
            return pa.scalar(written == "true")
        raise _unlike(name, kind, "true or false")
    if is_text(kind):
        if written == "text":
            return pa.scalar(_text(literal))
        raise _unlike(name, kind, "a text, such as 'a'")
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        if written == "number":
            return _number(str(literal.children[0]), name, kind)
        raise _unlike(name, kind, "a number")
    if written == "text":
        try:
            return _moment(_text(literal), kind)
        except (ValueError, OverflowError, pa.ArrowException):
            pass
    raise _unlike(name, kind, "a day or moment, such as '2026-01-31'")


def _text(node: Any) -> str:
    """The last part of a node, which is a text in quotes."""
    return str(node.children[-1])[1:-1].replace("''", "'")


def _number(text: str, name: str, kind: pa.DataType) -> pa.Scalar:
    try:
        whole = int(text)
    except ValueError:
        return pa.scalar(float(text))
    if not -_MOST_WHOLE <= whole < _MOST_WHOLE:
        raise _unlike(name, kind, "a number of 64 bits")
    return pa.scalar(whole)


def _moment(text: str, kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_date(kind):
        return pa.scalar(date.fromisoformat(text), kind)
    if not pa.types.is_timestamp(kind):
        raise ValueError("no moment")
    moment = datetime.fromisoformat(text)
    if kind.tz is None and moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    elif kind.tz is not None and moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return pa.scalar(moment, kind)


def _unlike(name: str, kind: pa.DataType, expected: str) -> InvalidInput:
    detail = f"expected {expected} beside the column {shown(name)}, which holds {kind}"
    return InvalidInput.at(WHERE, "wrong_type", detail)
