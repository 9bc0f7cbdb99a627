"""JSON that is none, or is more than one thing: each text as a small body, and as one so large that it lies in a file."""

import codecs
from collections.abc import Iterable

from tests.hostile.harness import COMPUTE, Case, http

# More than a body that is held in memory; blanks mean nothing.
BLANKS = b" " * 300_000
FINE = b'{"input": {"kind": "predictions", "y_true": ["a", "b"], "y_pred": ["b", "b"]}, "tags": {"k": "v"}}'
MATRIX = b'{"input": {"kind": "confusion_matrix", "matrix": %b}}'


def post(name: str, body: bytes, status: int, code: str | None, path: str = COMPUTE) -> Case:
    return Case(name, http("POST", path, body), status, code)


def in_both_sizes(name: str, body: bytes, status: int, code: str | None, path: str = COMPUTE) -> list[Case]:
    return [post(f"{name}, small", body, status, code, path), post(f"{name}, large", body + BLANKS, status, code, path)]


def texts(group: str, bodies: Iterable[tuple[str, bytes]], status: int, code: str | None) -> list[Case]:
    return [case for name, body in bodies for case in in_both_sizes(f"{group}: {name}", body, status, code)]


def without_end(start: bytes) -> bytes:
    """A document that ends after this text, the first that it has."""
    return FINE[: FINE.index(start) + len(start)]


TRUNCATED = texts(
    "ends after",
    [
        ("a brace", b"{"),
        ("half of a name", without_end(b'"inp')),
        ("a name", without_end(b'"input"')),
        ("a colon", without_end(b'"input":')),
        ("an object's brace", without_end(b'"input": {')),
        ("half of a text", without_end(b'"predi')),
        ("a text", without_end(b'"predictions"')),
        ("a comma between members", without_end(b'"predictions",')),
        ("the bracket of a column", without_end(b'"y_true": [')),
        ("half of a label", without_end(b'["a')),
        ("a label", without_end(b'["a"')),
        ("a comma between labels", without_end(b'["a",')),
        ("a column", without_end(b'["a", "b"]')),
        ("the input", without_end(b'["b", "b"]}')),
        ("half of a number", MATRIX[:-4] + b"[[1"),
        ("a point", MATRIX[:-4] + b"[[1."),
        ("an exponent's letter", MATRIX[:-4] + b"[[1e"),
        ("a sign", MATRIX[:-4] + b"[[-"),
        ("a row", MATRIX[:-4] + b"[[1, 2]"),
        ("half of true", b'{"input": tru'),
        ("half of null", b'{"input": nul'),
        ("a backslash", b'{"input": "\\'),
        ("half of an escape", b'{"input": "\\u12'),
        ("half of a pair", b'{"input": "\\ud83d'),
        ("half of a letter", b'{"input": "\xe2\x82'),
    ],
    400,
    "invalid_json",
)

NO_JSON = texts(
    "no JSON",
    [
        ("nothing but blanks", b" \n\t"),
        ("a word after the end", FINE + b"x"),
        ("a brace after the end", FINE + b"}"),
        ("two documents", FINE + FINE),
        ("two documents in two lines", FINE + b"\n" + FINE),
        ("a comment before", b"/* hello */" + FINE),
        ("a comment after", FINE + b"// hello"),
        ("a comment in a column", FINE.replace(b'["a",', b'["a", /* b */')),
        ("a comma at the end of an object", FINE[:-1] + b",}"),
        ("a comma at the end of a column", FINE.replace(b'"b"]', b'"b",]')),
        ("a comma at the start of a column", FINE.replace(b'["a"', b'[,"a"')),
        ("two commas in a column", FINE.replace(b'"a", ', b'"a",, ')),
        ("no comma in a column", FINE.replace(b'"a", ', b'"a" ')),
        ("no comma between members", FINE.replace(b"], ", b"] ")),
        ("no colon", FINE.replace(b'"input":', b'"input"')),
        ("two colons", FINE.replace(b'"input":', b'"input"::')),
        ("a bracket for a brace", FINE[:-1] + b"]"),
        ("a brace for a bracket", FINE.replace(b'"b"]', b'"b"}')),
        ("single quotes", FINE.replace(b'"', b"'")),
        ("a name without quotes", FINE.replace(b'"input"', b"input")),
        ("a number as a name", FINE.replace(b'"input"', b"1")),
        ("True", FINE.replace(b'"v"', b"True")),
        ("None", FINE.replace(b'"v"', b"None")),
        ("undefined", FINE.replace(b'"v"', b"undefined")),
        ("a hexadecimal number", MATRIX % b"[[0x10, 1], [1, 1]]"),
        ("a zero before a number", MATRIX % b"[[01, 1], [1, 1]]"),
        ("a plus before a number", MATRIX % b"[[+1, 1], [1, 1]]"),
        ("no digit before a point", MATRIX % b"[[.5, 1], [1, 1]]"),
        ("no digit behind a point", MATRIX % b"[[5., 1], [1, 1]]"),
        ("underscores in a number", MATRIX % b"[[1_000, 1], [1, 1]]"),
        ("no comma between rows", MATRIX % b"[[5, 1] [1, 1]]"),
        ("two commas between rows", MATRIX % b"[[5, 1],, [1, 1]]"),
        ("a comma behind the rows", MATRIX % b"[[5, 1], [1, 1],]"),
        ("a comma in a row too many", MATRIX % b"[[5, 1,], [1, 1]]"),
        ("a row that is not closed", MATRIX % b"[[5, 1], [1, 1]"),
        ("an escape that is none", FINE.replace(b'"v"', b'"\\x41"')),
        ("an escape with other letters", FINE.replace(b'"v"', b'"\\u12G4"')),
        ("an end of line in a text", FINE.replace(b'"v"', b'"a\nb"')),
        ("a tab in a text", FINE.replace(b'"v"', b'"a\tb"')),
        ("NUL in a text", FINE.replace(b'"v"', b'"a\0b"')),
        ("NUL behind the end", FINE + b"\0"),
        ("a line feed in a label", FINE.replace(b'"a"', b'"a\n"')),
        ("another kind of blank", b"\xc2\xa0" + FINE),
        ("a form feed", b"\f" + FINE),
        ("a name and a value", b"y_true=0&y_pred=1"),
        ("XML", b"<input kind='predictions'/>"),
        ("YAML", b"input:\n  kind: predictions\n"),
    ],
    400,
    "invalid_json",
)

ENCODINGS = texts(
    "no UTF-8",
    [
        ("a byte that is no letter", FINE.replace(b'"v"', b'"\xff"')),
        ("a byte that is no letter in a label", FINE.replace(b'"a"', b'"\xff"')),
        ("a byte between two members", FINE.replace(b", ", b",\x80", 1)),
        ("an overlong slash", FINE.replace(b'"v"', b'"\xc0\xaf"')),
        ("half of a pair", FINE.replace(b'"v"', b'"\xed\xa0\x80"')),
        ("a letter beyond the last", FINE.replace(b'"v"', b'"\xf5\x80\x80\x80"')),
        ("Latin-1", FINE.replace(b'"v"', '"é"'.encode("latin-1"))),
        ("a second mark", codecs.BOM_UTF8 * 2 + FINE),
        ("a mark at the end", FINE + codecs.BOM_UTF8),
        *(
            (encoding, FINE.decode().encode(encoding))
            for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
        ),
    ],
    400,
    "invalid_json",
)

NO_OBJECT = [
    case
    for name, body, code in (
        ("null", b"null", "wrong_type"),
        ("true", b"true", "wrong_type"),
        ("a number", b"1", "wrong_type"),
        ("a text", b'"input"', "wrong_type"),
        ("an array", b"[" + FINE + b"]", "wrong_type"),
        ("an empty object", b"{}", "missing_field"),
        ("an input that is null", b'{"input": null}', "wrong_type"),
        ("an input that is an array", b'{"input": []}', "wrong_type"),
        ("an input without a kind", b'{"input": {}}', "missing_field"),
        ("an input of a kind that is null", b'{"input": {"kind": null}}', "wrong_value"),
        ("an input of a kind that is an object", b'{"input": {"kind": {}}}', "wrong_value"),
        ("an input of another kind", b'{"input": {"kind": "regression"}}', "wrong_value"),
        ("a matrix that is an object", MATRIX % b"{}", "wrong_type"),
        ("a matrix that is a text", MATRIX % b'"[[1, 2], [3, 4]]"', "wrong_type"),
        ("a matrix that is a number", MATRIX % b"4", "wrong_type"),
        ("rows that are numbers", MATRIX % b"[1, 2, 3, 4]", "wrong_type"),
        ("rows that are objects", MATRIX % b'[{"a": 1}, {"b": 2}]', "wrong_type"),
        ("rows within rows", MATRIX % b"[[[1, 2]], [[3, 4]]]", "wrong_type"),
        ("rows of two lengths", MATRIX % b"[[1, 2], [3]]", "not_square"),
        ("a row too many", MATRIX % b"[[1, 2], [3, 4], [5, 6]]", "not_square"),
        ("no rows", MATRIX % b"[]", "too_few_classes"),
        ("empty rows", MATRIX % b"[[], []]", "not_square"),
        ("one class", MATRIX % b"[[1]]", "too_few_classes"),
    )
    for case in in_both_sizes(f"no object: {name}", body, 422, code)
]

REPEATED = texts(
    "a member twice",
    [
        ("the input", FINE[:-1] + b", " + FINE[1:]),
        ("the kind", FINE.replace(b'"kind"', b'"kind": "scores", "kind"')),
        ("a column", FINE.replace(b'"y_true"', b'"y_true": [0, 1], "y_true"')),
        ("a column and a text", FINE.replace(b'"y_true"', b'"y_true": "a", "y_true"')),
        ("a tag", FINE.replace(b'"k"', b'"k": "w", "k"')),
        ("a tag, once escaped", FINE.replace(b'"k"', b'"\\u006b": "w", "k"')),
        ("a member that nobody knows", FINE[:-1] + b', "x": {"a": 1, "a": 1}}'),
        ("an option", FINE[:-1] + b', "options": {"level": 0.5, "level": 0.9}}'),
        ("in an array in an array", FINE[:-1] + b', "x": [[1], [[{"a": 1, "a": 2}]]]}'),
    ],
    422,
    "repeated_member",
)

UNUSUAL = texts(
    "unusual but fine",
    [
        ("a mark before", codecs.BOM_UTF8 + FINE),
        ("blanks everywhere", FINE.replace(b":", b"\r\n\t :\r\n").replace(b",", b" \n,\t")),
        ("every letter escaped", FINE.replace(b'"input"', b'"\\u0069\\u006e\\u0070\\u0075\\u0074"')),
        ("the name of a column escaped", FINE.replace(b'"y_true"', b'"y\\u005ftrue"')),
        ("a pair of escapes", FINE.replace(b'"v"', b'"\\ud83d\\ude00"')),
        ("a slash escaped", FINE.replace(b'"v"', b'"\\/"')),
        ("a column in a text", FINE.replace(b'"v"', b'"\\"y_true\\": [0, 1]"')),
        ("a bracket in a label", FINE.replace(b'"a"', b'"]"')),
        ("a quote in a label", FINE.replace(b'"a"', b'"\\""')),
        ("a backslash at the end of a label", FINE.replace(b'"a"', b'"a\\\\"')),
        ("numbers written long", MATRIX % b"[[1.000000000000000000000000000000, 1e0], [1E+0, 10e-1]]"),
        ("zeros of every sign", MATRIX % b"[[-0, 1], [-0.0, 0e99]]"),
    ],
    200,
    None,
)

# As deep as readers go it is JSON of another form, and beyond it is refused as if it were none.
DEEP = [
    case
    for depth in (150, 5_000, 100_000)
    for name, body, code in (
        ("arrays", b"[" * depth + b"]" * depth, "wrong_type"),
        ("arrays without an end", b"[" * depth, "invalid_json"),
        ("objects", b'{"a":' * depth + b"1" + b"}" * depth, "missing_field"),
        ("objects without an end", b'{"a":' * depth, "invalid_json"),
        ("a column", FINE.replace(b'["a", "b"]', b"[" * depth + b"]" * depth), "wrong_length"),
        ("a matrix", MATRIX % (b"[" * depth + b"1" + b"]" * depth), "wrong_type"),
        ("options", FINE[:-1] + b', "options": ' + b"[" * depth + b"]" * depth + b"}", "wrong_type"),
    )
    for refused in ("invalid_json" if depth > 150 else code,)
    for case in in_both_sizes(f"{depth} deep: {name}", body, 400 if refused == "invalid_json" else 422, refused)
]

CASES = [
    post("no JSON: nothing", b"", 400, "invalid_json"),
    *TRUNCATED,
    *NO_JSON,
    *ENCODINGS,
    *NO_OBJECT,
    *REPEATED,
    *UNUSUAL,
    *DEEP,
]
