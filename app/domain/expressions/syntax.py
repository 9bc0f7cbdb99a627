"""Metric expressions as text: from characters to a tree of names that nobody has looked up yet."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, cast

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken, v_args

from app.domain.errors import InvalidExpression
from app.domain.wording import shown
from app.kernel.metrics.expression import Every

LONGEST: Final = 2000
DEEPEST: Final = 32
# Distinct texts whose trees are kept; a gate or a leaderboard asks the same few again and again.
_REMEMBERED: Final = 4096
# Words and labels that need no quotes, as in the grammar.
WORD: Final = re.compile(r"[^\W\d][\w.-]*")
_BRACKETED: Final = r"""\[[^\s(),\[\]"'@\\=<>!]*\]"""
_BARE: Final = re.compile(rf"""(?:[^\s(),\[\]"'@\\*]|{_BRACKETED})(?:[^\s(),\[\]"'@\\]|{_BRACKETED})*""")
_EVERY: Final = re.compile(r"@\s*\*")
_GRAMMAR: Final = Path(__file__).with_name("grammar.lark")
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"}
# Quoted text is skipped, so that brackets in labels do not count.
_BRACKETS: Final = re.compile(r"""(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|[()]""", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_EXPECTED: Final = {
    "NAME": "a metric or function",
    "SELECTOR": "@ and a class",
    "NUMBER": "a number",
    "QUOTED": "quoted text",
    "LPAR": "'('",
    "RPAR": "')'",
    "RSQB": "']'",
    "COMMA": "','",
    "EQUAL": "'='",
    "COMPARED": "=, !=, <, <=, > or >=",
    "IN": "in (…)",
    "$END": "the end",
}


class TokenKind(StrEnum):
    """Spelling of a value: a bare word, a number, or a quoted text."""

    WORD = "word"
    NUMBER = "number"
    QUOTED = "quoted"


@dataclass(frozen=True, slots=True)
class Literal:
    """A value as written, quotes and escapes resolved."""

    kind: TokenKind
    text: str
    position: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """``name=value``."""

    name: str
    value: Literal
    position: int


@dataclass(frozen=True, slots=True)
class Selector:
    """``@label`` or ``@*``."""

    label: str | Every
    position: int


@dataclass(frozen=True, slots=True)
class Compared:
    """A condition on an attribute as written; several values are those of `in`, whose operator is `=`."""

    name: str
    operator: str
    values: tuple[Literal, ...]
    position: int


@dataclass(frozen=True, slots=True)
class Call:
    """A name with what stands in its brackets (None when there are none), behind its ``@``, and in square brackets."""

    name: str
    arguments: "tuple[Argument, ...] | None"
    selector: Selector | None
    position: int
    where: tuple[Compared, ...] = ()


Argument = Call | Assignment | Literal


@lru_cache(maxsize=_REMEMBERED)
def read(text: str) -> Call:
    """Tree of an expression.

    Raises:
        InvalidExpression: too long, nested too deep, or not in the grammar; says where and what was expected.
    """
    return cast(Call, _parsed(text, "start"))


def read_conditions(text: str) -> tuple[Compared, ...]:
    """Conditions of a slice with commas between them. Raises as `read` does."""
    return cast(tuple[Compared, ...], _parsed(text, "conditions"))


def _parsed(text: str, start: str) -> object:
    if len(text) > LONGEST:
        raise InvalidExpression(f"expected at most {LONGEST} characters, got {len(text)}", position=LONGEST)
    _check_depth(text)
    try:
        return _parser().parse(text, start=start)
    except UnexpectedInput as error:
        raise _explained(error, text) from None


def quote(label: str) -> str:
    """Text in double quotes, as `read` takes it back."""
    plain = label.isprintable() and '"' not in label and "\\" not in label
    return f'"{label}"' if plain else '"' + "".join(_escaped(label)) + '"'


def unquoted(text: str, position: int) -> str:
    """Content of a quoted text; ``position`` is that of its opening quote.

    Raises:
        InvalidExpression: a backslash stands before what is no escape.
    """

    def resolve(match: re.Match[str]) -> str:
        escape = match[1]
        where = position + 1 + match.start()
        if len(escape) == 5:
            code = int(escape[1:], 16)
            if 0xD800 <= code <= 0xDFFF:
                raise InvalidExpression(
                    f"\\{escape} is half a character; write the character itself (at character {where + 1})",
                    position=where,
                )
            return chr(code)
        if escape in _ESCAPES:
            return _ESCAPES[escape]
        if escape in "\"'\\":
            return escape
        raise InvalidExpression(
            f"\\{escape} is no escape; known are \\\" \\' \\\\ \\n \\r \\t and \\u with four hexadecimal digits "
            f"(at character {where + 1})",
            position=where,
        )

    return _ESCAPE.sub(resolve, text[1:-1])


def write_label(label: str) -> str:
    """A label as it stands behind an ``@``: bare where it can be, and where a reader would see all of it."""
    return label if _BARE.fullmatch(label) and label.isprintable() else quote(label)


def of_class(text: str, label: str) -> str:
    """A list over the classes as it was asked for, of one of them: ``tpr@B`` for ``tpr@*``."""
    return _EVERY.sub(lambda _: f"@{write_label(label)}", text, count=1)


def _escaped(label: str) -> Iterator[str]:
    names = {value: key for key, value in _ESCAPES.items()}
    for character in label:
        if character in '"\\':
            yield "\\" + character
        elif character in names:
            yield "\\" + names[character]
        elif character.isprintable() or ord(character) > 0xFFFF:
            yield character
        else:
            yield f"\\u{ord(character):04x}"


@v_args(inline=True)
class _Build(Transformer[Token, Call]):
    """Nodes of the grammar as our own."""

    def plain(self, name: Token, selector: Token | None) -> Call:
        return Call(str(name), None, _selector(selector), _at(name))

    def called(self, name: Token, arguments: tuple[Argument, ...] | None, selector: Token | None) -> Call:
        return Call(str(name), arguments or (), _selector(selector), _at(name))

    def sliced(self, call: Call, conditions: tuple[Compared, ...]) -> Call:
        return replace(call, where=(*call.where, *conditions))

    def arguments(self, *arguments: Argument) -> tuple[Argument, ...]:
        return arguments

    def assignment(self, name: Token, value: Literal) -> Assignment:
        return Assignment(str(name), value, _at(name))

    def conditions(self, *conditions: Compared) -> tuple[Compared, ...]:
        return conditions

    def compared(self, name: Literal, operator: Token, value: Literal) -> Compared:
        return Compared(name.text, str(operator), (value,), name.position)

    def among(self, name: Literal, *values: Literal) -> Compared:
        return Compared(name.text, "=", values, name.position)

    def word(self, token: Token) -> Literal:
        return Literal(TokenKind.WORD, str(token), _at(token))

    def number(self, token: Token) -> Literal:
        return Literal(TokenKind.NUMBER, str(token), _at(token))

    def quoted(self, token: Token) -> Literal:
        return Literal(TokenKind.QUOTED, unquoted(str(token), _at(token)), _at(token))


def _at(token: Token) -> int:
    return token.start_pos or 0


def _selector(token: Token | None) -> Selector | None:
    if token is None:
        return None
    text = token[1:].lstrip()
    position = _at(token) + len(token) - len(text)
    if text == Every.CLASS:
        return Selector(Every.CLASS, position)
    return Selector(unquoted(text, position) if text[0] in "\"'" else str(text), position)


@cache
def _parser() -> Lark:
    return Lark(
        _GRAMMAR.read_text(encoding="utf-8"), parser="lalr", transformer=_Build(), start=["start", "conditions"]
    )


def _check_depth(text: str) -> None:
    depth = 0
    for match in _BRACKETS.finditer(text):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth > DEEPEST:
            raise InvalidExpression(
                f"expected brackets at most {DEEPEST} deep (at character {match.start() + 1})", position=match.start()
            )


def _explained(error: UnexpectedInput, text: str) -> InvalidExpression:
    """The parser's error in words."""
    position = len(text)
    if isinstance(error, UnexpectedCharacters):
        position = cast(int, error.pos_in_stream)  # lark declares it as None
        unclosed = _unclosed_quote(text)
        if unclosed is not None:
            return InvalidExpression(f"the quote at character {unclosed + 1} is not closed", position=unclosed)
        if text[position] == "@":
            return InvalidExpression(
                f'expected a class after the @ at character {position + 1}: @label, @"any text" or @* for every class',
                position=position,
            )
        expected, got = error.allowed, repr(text[position])
    elif isinstance(error, UnexpectedToken):
        expected = error.accepts or error.expected
        ended = error.token.type == "$END"
        position = len(text) if ended else _at(error.token)
        got = "the end" if ended else shown(str(error.token))
    else:
        raise TypeError(f"no words for {type(error).__name__}")
    wanted = sorted(_EXPECTED[name] for name in expected if name in _EXPECTED)
    return InvalidExpression(
        f"expected {' or '.join(wanted)} at character {position + 1}, got {got}", position=position
    )


def _unclosed_quote(text: str) -> int | None:
    """Return the position of the quote that is not closed, or None."""
    rest = _BRACKETS.sub(lambda match: " " * len(match[0]), text)
    found = re.search(r"[\"']", rest)
    return found.start() if found else None
