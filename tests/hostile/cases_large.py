"""Bodies that are large where nothing may be, or larger than anything may be: refused early, in little memory."""

import itertools
from collections.abc import Callable, Iterator

from tests.hostile.cases_json import MATRIX, post
from tests.hostile.harness import COMPUTE, JSON, MB, Case, http, streamed

BATCH = "/v1/evaluations/batch?store=false"
PREDICTIONS = b'{"input": {"kind": "predictions", "y_true": '
COUNTS = b'{"kind": "binary_counts", "tp": 8, "fn": 2, "fp": 1, "tn": 9}'
WITH_COUNTS = b'{"input": ' + COUNTS


def listed(entry: bytes, count: int) -> bytes:
    return b"[" + b",".join([entry] * count) + b"]"


def members(count: int, entry: bytes = b"1") -> bytes:
    """Members `"k0": 1` and so on, with commas between them."""
    return b", ".join(b'"k%d": %b' % (index, entry) for index in range(count))


def square(size: int) -> Callable[[], Iterator[bytes]]:
    row = b"[" + b",".join([b"1"] * size) + b"]"
    return streamed((MATRIX[:-4], 1), (b"[" + row, 1), (b"," + row, size - 1), (b"]}}", 1))


def late(name: str, body: Callable[[], bytes], status: int, code: str | None, path: str = COMPUTE) -> Case:
    """A case whose body is made when it is sent."""
    return Case(name, lambda: http("POST", path, body()), status, code)


BESIDE_COLUMNS = [
    Case("large: 20 million numbers under a name that nobody knows", streamed((b'{"foo": [1', 1), (b",1", 20_000_000), (b"]}", 1)), 422, "too_large"),
    Case("large: 20 million numbers in tags", streamed((WITH_COUNTS + b', "tags": {"a": [1', 1), (b",1", 20_000_000), (b"]}}", 1)), 422, "too_large"),
    Case("large: a text of 40 MB", streamed((b'{"input": "', 1), (b"a", 40 * MB), (b'"}', 1)), 422, "wrong_type"),
    Case("large: 40 MB of arrays that open", streamed((b"[", 40 * MB)), 400, "invalid_json"),
    Case("large: 8 MB of empty arrays", streamed((b"[[]", 1), (b",[]", 2_700_000), (b"]", 1)), 422, "wrong_type"),
    Case("large: 2 MB of empty objects", streamed((b'{"input": [{}', 1), (b",{}", 700_000), (b"]}", 1)), 422, "wrong_type"),
    Case("large: 7 MB of numbers", streamed((b'{"input": [1', 1), (b",1", 3_500_000), (b"]}", 1)), 422, "wrong_type"),
    Case("large: 7 MB of colons", streamed((b'{"input": "', 1), (b":", 7_000_000), (b'"}', 1)), 422, "wrong_type"),
    late("large: 100,000 members that nobody knows", lambda: WITH_COUNTS + b", " + members(100_000) + b"}", 422, "too_many_members"),
    late("large: 100,000 members, of which one is there twice", lambda: WITH_COUNTS + b", " + members(100_000) + b', "k0": 1}', 422, "too_many_members"),
    late("large: 100,000 options", lambda: WITH_COUNTS + b', "options": {' + members(100_000) + b"}}", 422, "too_many_members"),
    late("large: 60,000 tags", lambda: WITH_COUNTS + b', "tags": {' + members(60_000, b'"v"') + b"}}", 422, "too_many_members"),
    late("large: 60,000 tags that are numbers", lambda: WITH_COUNTS + b', "tags": {' + members(60_000) + b"}}", 422, "too_many_members"),
    late("large: 60,000 folds", lambda: b'{"input": {"kind": "folds", "folds": ' + listed(COUNTS, 60_000) + b"}}", 422, "wrong_length"),
    late("large: 60,000 folds that are empty", lambda: b'{"input": {"kind": "folds", "folds": ' + listed(b"{}", 60_000) + b"}}", 422, "wrong_length"),
    late("large: 10,000 folds of columns", lambda: b'{"input": {"kind": "folds", "folds": ' + listed(PREDICTIONS[10:] + b'[0,1],"y_pred":[0,0]}', 10_000) + b"}}", 422, "wrong_length"),
    late("large: 1,000 folds", lambda: b'{"input": {"kind": "folds", "folds": ' + listed(COUNTS, 1_000) + b"}}", 200, None),
    late("large: 100,000 labels", lambda: MATRIX[:-2] % b"[[5, 1], [2, 7]]" + b', "labels": [' + b",".join(b'"%d"' % one for one in range(100_000)) + b"]}}", 422, "wrong_length"),
    late("large: 400,000 labels that are one", lambda: MATRIX[:-2] % b"[[5, 1], [2, 7]]" + b', "labels": ' + listed(b'"a"', 400_000) + b"}}", 422, "wrong_length"),
    late("large: 100,000 expressions", lambda: WITH_COUNTS + b', "options": {"metrics": ' + listed(b'"h_mean"', 100_000) + b"}}", 422, "wrong_length"),
    late("large: pseudo counts of 1000 x 1000", lambda: WITH_COUNTS + b', "options": {"intervals": "all", "prior": "custom", "pseudo_counts": ' + listed(listed(b"1", 1000), 1000) + b"}}", 422, "wrong_shape"),
    late("large: a name of 10 MB", lambda: WITH_COUNTS + b', "model": {"name": "' + b"a" * 10_000_000 + b'"}}', 422, "wrong_length"),
    late("large: a name of 5 MB", lambda: WITH_COUNTS + b', "model": {"name": "' + b"a" * 5_000_000 + b'"}}', 422, "wrong_length"),
    late("large: a name of accents alone", lambda: WITH_COUNTS + b', "model": {"name": "' + "́".encode() * 2_000_000 + b'"}}', 422, "wrong_length"),
    late("large: a member's name of 5 MB", lambda: WITH_COUNTS + b', "' + b"a" * 5_000_000 + b'": 1}', 422, "unknown_field"),
    late("large: a label of 5 MB", lambda: MATRIX[:-2] % b"[[5, 1], [2, 7]]" + b', "labels": ["' + b"a" * 5_000_000 + b'", "b"]}}', 422, "label_length"),
    late("large: an expression of 5 MB", lambda: WITH_COUNTS + b', "options": {"metrics": ["' + b"(" * 5_000_000 + b'"]}}', 422, "wrong_length"),
    late("large: a kind of 5 MB", lambda: b'{"input": {"kind": "' + b"a" * 5_000_000 + b'"}}', 422, "wrong_value"),
]  # fmt: skip

MATRICES = [
    Case("large: a matrix of 1,001 classes", square(1_001), 422, "too_many_classes"),
    Case("large: a matrix of 5,000 classes", square(5_000), 422, "too_many_classes"),
    Case("large: a matrix of 10,500 classes", square(10_500), 413, "body_too_large"),
    Case("large: a matrix of one row of 5 million", streamed((MATRIX[:-4] + b"[[1", 1), (b",1", 5_000_000), (b"]]}}", 1)), 422, "too_large"),
    Case("large: a matrix of 5 million rows of one", streamed((MATRIX[:-4] + b"[[1]", 1), (b",[1]", 5_000_000), (b"]}}", 1)), 422, "too_large"),
    Case("large: a matrix of a million rows of texts", streamed((MATRIX[:-4] + b'[["x","y"]', 1), (b',["x","y"]', 1_000_000), (b"]}}", 1)), 422, "too_many_classes"),
    Case("large: a matrix of 300,000 empty rows", streamed((MATRIX[:-4] + b"[[]", 1), (b",[]", 300_000), (b"]}}", 1)), 422, "too_many_classes"),
    Case("large: a matrix of rows of two lengths", streamed((MATRIX[:-4] + b"[[1,2]", 1), (b",[1,2],[3]", 200_000), (b"]}}", 1)), 422, "too_many_classes"),
    Case("large: a matrix of a million nulls", streamed((MATRIX[:-4] + b"[null", 1), (b",null", 1_000_000), (b"]}}", 1)), 422, "too_many_classes"),
    Case("large: a matrix in a matrix, again and again", streamed((b'{"matrix":[', 50_000)), 400, "invalid_json"),
]  # fmt: skip


def predictions(entry: bytes, count: int, second: bytes | None = None) -> Callable[[], Iterator[bytes]]:
    """Two columns of an entry; the first of the first column is a 1."""
    return streamed(
        (PREDICTIONS + b"[1", 1),
        (b"," + entry, count - 1),
        (b'], "y_pred": [' + (second or entry), 1),
        (b"," + (second or entry), count - 1),
        (b"]}}", 1),
    )


COLUMNS = [
    Case("large: eleven million labels", predictions(b"0", 11_000_000), 422, "too_many_samples"),
    Case("large: ten million labels", predictions(b"0", 10_000_000), 200, None),
    Case("large: a million labels, one column of texts", predictions(b"0", 1_000_000, b'"0"'), 422, "mixed_labels"),
    Case("large: a million labels of null", predictions(b"null", 1_000_000), 422, "not_a_label"),
    Case("large: 300,000 labels that are arrays", predictions(b"[]", 300_000), 422, "not_a_label"),
    Case("large: 300,000 labels that are objects", predictions(b"{}", 300_000), 422, "not_a_label"),
    Case("large: a million labels that are fractions", predictions(b"0.5", 1_000_000), 422, "not_a_label"),
    Case("large: a million labels beyond 64 bits", predictions(b"18446744073709551615", 1_000_000), 422, "label_too_large"),
    Case("large: a label of 20 MB", streamed((PREDICTIONS + b'["', 1), (b"a", 20_000_000), (b'"], "y_pred": ["b"]}}', 1)), 422, "bad_label"),
    Case("large: a label of 5 MB of brackets", streamed((PREDICTIONS + b'["', 1), (b"]", 5_000_000), (b'"], "y_pred": ["b"]}}', 1)), 422, "bad_label"),
    Case("large: a label of 5 MB of quotes", streamed((PREDICTIONS + b'["', 1), (b'\\"', 2_500_000), (b'"], "y_pred": ["b"]}}', 1)), 422, "bad_label"),
    Case("large: a label of 5 MB of backslashes", streamed((PREDICTIONS + b'["', 1), (b"\\\\", 2_500_000), (b'"], "y_pred": ["b"]}}', 1)), 422, "bad_label"),
    Case("large: a million commas in a column", streamed((PREDICTIONS + b"[1", 1), (b",", 1_000_000), (b"]}}", 1)), 400, "invalid_json"),
    Case("large: a column that is not closed", streamed((PREDICTIONS + b"[1", 1), (b",1", 1_000_000)), 400, "invalid_json"),
    Case("large: 30,000 columns", streamed((b'{"input": [', 1), (b'{"y_true": [0, 1]},', 30_000), (b"1]}", 1)), 422, "wrong_type"),
    Case("large: half a million columns that are none", streamed((b'{"input": [', 1), (b'{"y_true": [0 1]},', 400_000), (b"1]}", 1)), 400, "invalid_json"),
    Case("large: columns that open and never close", streamed((b'{"input": [', 1), (b'{"y_true": [', 50_000)), 400, "invalid_json"),
    Case("large: columns of different lengths", streamed((PREDICTIONS + b"[1", 1), (b",0", 500_000), (b'], "y_pred": [0', 1), (b",0", 400_000), (b"]}}", 1)), 422, "wrong_length"),
    Case("large: 300,000 classes", lambda: http("POST", COMPUTE, PREDICTIONS + b"[" + b",".join(b"%d" % one for one in range(300_000)) + b'], "y_pred": ' + listed(b"0", 300_000) + b"}}"), 422, "too_many_classes"),
    Case("large: 60,000 classes of text", lambda: http("POST", COMPUTE, PREDICTIONS + b"[" + b",".join(b'"c%d"' % one for one in range(60_000)) + b'], "y_pred": ' + listed(b'"c0"', 60_000) + b"}}"), 422, "too_many_classes"),
    Case("large: probabilities of 5,000 classes", streamed((b'{"input": {"kind": "probabilities", "y_true": [0' + b",1" * 999 + b'], "probabilities": [[1' + b",0" * 4_999 + b"]", 1), (b",[1" + b",0" * 4_999 + b"]", 999), (b"]}}", 1)), 422, "too_many_classes"),
    Case("large: probabilities of a thousand classes, 20,000 samples", streamed((b'{"input": {"kind": "probabilities", "y_true": [0' + b",1" * 19_999 + b'], "probabilities": [[1' + b",0" * 999 + b"]", 1), (b",[1" + b",0" * 999 + b"]", 19_999), (b"]}}", 1)), 422, "labels_needed"),
    Case("large: a body of 300 MB that is announced", http("POST", COMPUTE, b"{", {**JSON, "Content-Length": str(300 * MB)}, length=False), 413, "body_too_large"),
    Case("large: a body of 10^30 bytes that is announced", http("POST", COMPUTE, b"{", {**JSON, "Content-Length": str(10**30)}, length=False), 400, "bad_request"),
]  # fmt: skip


def heavy(count: int) -> bytes:
    """A batch of items that each take a process: 40,000 samples."""
    column = b"[" + b",".join(itertools.islice(itertools.cycle((b"0", b"1", b"1")), 40_000)) + b"]"
    item = b'{"input": {"kind": "predictions", "y_true": %b, "y_pred": %b}}' % (column, column)
    return b'{"evaluations": ' + listed(item, count) + b"}"


BATCHES = [
    late("batch: 10,000 items", lambda: b'{"evaluations": ' + listed(b'{"input": ' + COUNTS + b"}", 10_000) + b"}", 422, "wrong_length", BATCH),
    late("batch: 2,000 items with columns", lambda: b'{"evaluations": ' + listed(PREDICTIONS + listed(b"0", 1_000) + b', "y_pred": ' + listed(b"1", 1_000) + b"}}", 2_000) + b"}", 422, "wrong_length", BATCH),
    late("batch: 60 heavy items", lambda: heavy(60), 207, None, BATCH),
    late("batch: 1,000 items that are null", lambda: b'{"evaluations": ' + listed(b"null", 1_000) + b"}", 207, None, BATCH),
    late("batch: a million items that are null", lambda: b'{"evaluations": ' + listed(b"null", 1_000_000) + b"}", 422, "wrong_length", BATCH),
    late("batch: items within items", lambda: b'{"evaluations": [' * 50_000 + b"]}" * 50_000, 400, "invalid_json", BATCH),
    late("batch: an item of 1 MB that is no input", lambda: b'{"evaluations": [{"x": ' + listed(b"[]", 350_000) + b"}]}", 207, None, BATCH),
    post("batch: no items", b'{"evaluations": []}', 422, "wrong_length", BATCH),
    post("batch: an object", b'{"evaluations": {"0": {}}}', 422, "wrong_type", BATCH),
]  # fmt: skip

CASES = [*BESIDE_COLUMNS, *MATRICES, *COLUMNS, *BATCHES]
