"""Files: bombs, lies about sizes, columns that nobody named, and what is no file at all."""

import io
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from tests.hostile.harness import Case, form

Columns = dict[str, Any]
PREDICTIONS = {"kind": "predictions"}
PROBABILITIES = {"kind": "probabilities"}
SCORES = {"kind": "scores"}
TWO: Columns = {"y_true": [0, 1, 1, 0], "y_pred": [0, 1, 0, 0]}


def npz(**arrays: Any) -> bytes:
    sink = io.BytesIO()
    named: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
    np.savez_compressed(sink, **named)
    return sink.getvalue()


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", method, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return sink.getvalue()


def npy(array: Any) -> bytes:
    sink = io.BytesIO()
    np.save(sink, np.asarray(array))
    return sink.getvalue()


def npy_header(shape: str, descr: str = "'<f8'", content: bytes = b"\0" * 64) -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


def with_header(header: bytes) -> Callable[[], bytes]:
    return lambda: form(zipped({"y_true.npy": header, "y_pred.npy": npy([0, 1])}), PREDICTIONS)


def parquet(columns: Columns, **options: Any) -> bytes:
    sink = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), sink, **options)
    return sink.getvalue()


def repeated_text(rows: int, *, dictionary: bool) -> bytes:
    """One text of 200 characters in every row of two columns; 3 million rows in 422 KB, or less."""
    piece = 100_000
    column = pa.array(["x" * 200] * piece)
    batch = pa.table({"y_true": column, "y_pred": column})
    sink = io.BytesIO()
    with pa.parquet.ParquetWriter(sink, batch.schema, use_dictionary=dictionary, compression="zstd") as writer:
        for _ in range(rows // piece):
            writer.write_table(batch)
    return sink.getvalue()


def footer_length(data: bytes, length: int) -> bytes:
    return data[:-8] + struct.pack("<I", length) + data[-4:]


def arrow(columns: Columns, compression: str | None = None, *, stream: bool = False) -> bytes:
    sink = io.BytesIO()
    table = pa.table(columns)
    options = pa.ipc.IpcWriteOptions(compression=compression)
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def arrow_claim(claim: int) -> bytes:
    """A compressed buffer that says it unpacks to this many bytes."""
    data = arrow({"y_true": list(range(1000)) * 50, "y_pred": list(range(1000)) * 50}, "lz4", stream=True)
    size = struct.pack("<q", 8 * 50_000)
    assert size in data
    return data.replace(size, struct.pack("<q", claim))


def arrow_offsets() -> bytes:
    """Texts that lie outside of the file."""
    data = arrow({"y_true": ["ab", "cd", "ef"], "y_pred": ["ab", "cd", "ef"]}, stream=True)
    offsets = struct.pack("<4i", 0, 2, 4, 6)
    assert offsets in data
    return data.replace(offsets, struct.pack("<4i", 0, 2, 4, 2**30))


def arrow_codes() -> bytes:
    """A dictionary of two texts and a code 99."""
    column = pa.array(["a", "b", "a", "b"]).dictionary_encode()
    data = arrow({"y_true": column, "y_pred": column}, stream=True)
    codes = struct.pack("<4i", 0, 1, 0, 1)
    assert codes in data
    return data.replace(codes, struct.pack("<4i", 0, 1, 99, 1))


def case(
    name: str,
    data: bytes | Callable[[], bytes],
    status: int,
    code: str | None,
    source: dict[str, Any] | None = None,
) -> Case:
    def request() -> bytes:
        return form(data() if callable(data) else data, PREDICTIONS if source is None else source)

    return Case(name, request, status, code)


BOMBS = [
    case("parquet: one text in nine million rows", lambda: repeated_text(9_000_000, dictionary=True), 422, "too_few_classes"),
    case("parquet: texts not as a dictionary", lambda: repeated_text(3_000_000, dictionary=False), 413, "too_large"),
    case(
        "parquet: thirty million rows",
        lambda: parquet(dict.fromkeys(("y_true", "y_pred"), np.zeros(30_000_000, np.int8)), compression="zstd"),
        413,
        "too_large",
    ),
    case("parquet: five thousand columns", lambda: parquet({f"c{k}": [1] for k in range(5000)}), 413, "too_large"),
    case("parquet: a footer of 2 GB", lambda: footer_length(parquet(TWO), 2**31), 422, "unreadable_data"),
    case("parquet: a footer of 20 MB", lambda: footer_length(b"PAR1" + b"\0" * 25_000_000 + b"PAR1PAR1", 20_000_000), 413, "too_large"),
    case("arrow: a gigabyte of zeros", lambda: arrow(dict.fromkeys(("y_true", "y_pred"), np.zeros(60_000_000)), "zstd"), 413, "too_large"),
    case("arrow: a claim of 2^60 bytes", lambda: arrow_claim(2**60), 413, "too_large"),
    case("arrow: a claim of 200 MB", lambda: arrow_claim(200_000_000), 422, "unreadable_data"),
    case("arrow: a negative claim", lambda: arrow_claim(-5), 422, "unreadable_data"),
    case("arrow: 2^31 rows of nothing", lambda: arrow({"y_true": pa.nulls(2**31 - 1), "y_pred": pa.nulls(2**31 - 1)}), 413, "too_large"),
    case("csv: eleven million rows", lambda: b"y_true,y_pred\n" + b"0,1\n" * 11_000_000, 413, "too_large"),
    case("csv: a million columns", lambda: b"y_true" + b",a" * 500_000 + b"\n1\n", 413, "too_large"),
    case("csv: a first line of 20 MB", lambda: b"y" * 20_000_000, 413, "too_large"),
    case("csv: a text of 20 MB", lambda: b"y_true,y_pred\na," + b"y" * 20_000_000 + b"\n", 422, "unreadable_data"),
    case("npz: 600 MB of zeros", lambda: zipped({"y_true.npy": npy_header("(75000000,)", content=bytes(600_000_000)), "y_pred.npy": npy([0, 1])}), 413, "too_large"),
    case("npz: eleven million rows", lambda: npz(y_true=np.zeros(11_000_000, np.int8), y_pred=np.zeros(11_000_000, np.int8)), 413, "too_large"),
    case("npz: a hundred and fifty million probabilities", lambda: npz(y_true=np.zeros(500_000, np.int8), probabilities=np.zeros((500_000, 300), np.int8)), 413, "too_large", PROBABILITIES),
    case("npz: a list of members of 17 MB", lambda: zipped({f"{k:01000}": b"" for k in range(17_000)}, zipfile.ZIP_STORED), 413, "too_large"),
    case("ids: one of a thousand characters", lambda: npz(y_true=[0, 1], y_pred=[0, 1], sample_id=["a", "b" * 1000]), 422, "not_an_id"),
    case("ids: two million, one of 200 characters", lambda: parquet({**dict.fromkeys(("y_true", "y_pred"), [0, 1] * 1_000_000), "group_id": ["g" * 200] + ["a"] * 1_999_999}), 413, "too_large"),
]  # fmt: skip

NPZ = [
    case("npz: a column vector of labels", npz(y_true=[[0], [1], [1]], y_pred=[[0], [1], [0]]), 200, None),
    case("npz: a column vector of scores", npz(y_true=[0, 1, 1], score=[[0.1], [0.7], [0.3]]), 200, None, SCORES),
    case("npz: labels in a matrix", npz(y_true=[[0, 1], [1, 0]], y_pred=[0, 1]), 422, "not_a_column"),
    case("npz: labels in a row", npz(y_true=[[0, 1]], y_pred=[0, 1]), 422, "not_a_column"),
    case("npz: scores in a matrix", npz(y_true=[0, 1], score=[[0.1, 0.2], [0.3, 0.4]]), 422, "not_a_column", SCORES),
    case("npz: one number", npz(y_true=1, y_pred=[0, 1]), 422, "not_a_column"),
    case("npz: a label in a column vector", npz(**{"y_true.a": [[0], [1], [1]], "y_true.b": [1, 0, 1], "y_pred.a": [0, 1, 1], "y_pred.b": [1, 0, 0]}), 200, None, {"kind": "multilabel"}),
    case("npz: a label in a matrix", npz(**{"y_true.a": [[0, 7], [1, 0]], "y_true.b": [1, 0], "y_pred.a": [0, 1], "y_pred.b": [1, 0]}), 422, "not_a_column", {"kind": "multilabel"}),
    case("npz: complex numbers", npz(y_true=[1j, 2j], y_pred=[0, 1]), 422, "not_a_column"),
    case("npz: dates", npz(y_true=np.array(["2026-01-01"], "M8[D]"), y_pred=[0]), 422, "not_a_column"),
    case("npz: bytes", npz(y_true=np.array([b"a", b"b"]), y_pred=np.array([b"a", b"b"])), 422, "not_a_column"),
    case("npz: a member that is no array", zipped({"y_true.npy": b"no array at all", "y_pred.npy": npy([0])}), 422, "unreadable_data"),
    case("npz: a member that is empty", zipped({"y_true.npy": b"", "y_pred.npy": npy([0])}), 422, "unreadable_data"),
    case("npz: text labels", npz(y_true=["a", "b"], y_pred=["a", "b"]), 200, None),
    case("npz: probabilities in a column", npz(y_true=[0, 1], probabilities=[[0.5], [0.5]]), 422, "too_few_classes", PROBABILITIES),
    case("npz: probabilities in three dimensions", npz(y_true=[0, 1], probabilities=np.zeros((2, 2, 2))), 422, "not_a_row", PROBABILITIES),
    case("npz: compressed by lzma", zipped({"y_true.npy": npy([0, 1]), "y_pred.npy": npy([0, 1])}, zipfile.ZIP_LZMA), 422, "unreadable_data"),
    case("npz: compressed by bzip2", zipped({"y_true.npy": npy([0, 1]), "y_pred.npy": npy([0, 1])}, zipfile.ZIP_BZIP2), 422, "unreadable_data"),
    case("npz: no members", zipped({}), 422, "missing_column"),
    case("npz: nothing but the start", b"PK\x03\x04", 422, "unreadable_data"),
    case("npz: one member twice", zipped({"y_true.npy": npy([0, 1]), "y_true": npy([0, 1]), "y_pred.npy": npy([0, 1])}), 422, "duplicate_column"),
    case("npz: the CRC is wrong", zipped({"y_true.npy": npy([0, 1]), "y_pred.npy": npy([0, 1])}, zipfile.ZIP_STORED).replace(npy([0, 1])[-8:], b"\x07" * 8, 1), 422, "unreadable_data"),
    case("npz: integers beyond 64 bits", npz(y_true=np.array([2**63, 1], np.uint64), y_pred=[0, 1]), 422, "label_too_large"),
    *(
        Case(f"npz: a header with {name}", with_header(header), 422, code)
        for name, header, code in (
            ("the shape 10^12", npy_header("(1000000000000,)"), "unreadable_data"),
            ("the shape 10^40", npy_header(f"({10**40},)"), "unreadable_data"),
            ("a negative shape", npy_header("(-8,)"), "unreadable_data"),
            ("two negative shapes", npy_header("(-2, -4)"), "unreadable_data"),
            ("a shape of text", npy_header("'8'"), "unreadable_data"),
            ("less than there is", npy_header("(4,)"), "unreadable_data"),
            ("objects", npy_header("(8,)", "'|O'"), "not_a_column"),
            ("a structure", npy_header("(4,)", "[('a', '<f8'), ('b', '<f8')]"), "not_a_column"),
            ("texts of 2^30 characters", npy_header("(2,)", f"'<U{2**30}'"), "unreadable_data"),
            ("texts of no characters", npy_header("(100000,)", "'<U0'", b""), "unreadable_data"),
            ("code", npy_header("__import__('os').getpid()"), "unreadable_data"),
            ("a thousand brackets", npy_header("(" * 1000 + ")" * 1000), "unreadable_data"),
            ("version 9", b"\x93NUMPY\x09\x00" + npy([0])[8:], "unreadable_data"),
            ("a length that is none", b"\x93NUMPY\x01\x00\xff\xff{}", "unreadable_data"),
        )
    ),
]  # fmt: skip

ARROW = [
    case("arrow: texts outside of the file", arrow_offsets, 422, "unreadable_data"),
    case("arrow: codes outside of the dictionary", arrow_codes, 422, "unreadable_data"),
    case("arrow: the end is missing", arrow(TWO)[:-10], 422, "unreadable_data"),
    case("arrow: half of it", arrow(TWO)[: len(arrow(TWO)) // 2], 422, "unreadable_data"),
    case("arrow: nothing but the start", b"ARROW1\0\0", 422, "unreadable_data"),
    case("arrow: an endless message", b"\xff\xff\xff\xff\xff\xff\xff\x7f", 422, "unreadable_data"),
    case("arrow: lists", arrow({"y_true": [[0], [1]], "y_pred": [[0], [1]]}), 422, "not_a_column"),
    *(
        case(f"arrow: lists of one size, {code}", arrow({name: pa.array([[0], second, [1]], pa.list_(pa.int64(), 1)) for name in ("y_true", "y_pred")}), 422, code)
        for second, code in ((None, "missing_value"), ([0], "not_a_column"))
    ),
    case("arrow: no values", arrow({"y_true": pa.nulls(3), "y_pred": [0, 1, 1]}), 422, "missing_value"),
    case("arrow: lz4", arrow(TWO, "lz4"), 200, None),
    case("arrow: zstd in a stream", arrow(TWO, "zstd", stream=True), 200, None),
    case("arrow: views of texts", arrow({name: pa.array(["a", "b", "a"], pa.string_view()) for name in TWO}), 200, None),
    case("arrow: a dictionary of numbers", arrow({name: pa.array([5, 6, 5]).dictionary_encode() for name in TWO}), 200, None),
    case("arrow: a class that does not occur", arrow({name: pa.DictionaryArray.from_arrays([0, 1], ["a", "b", "unused"]) for name in TWO}), 200, None),
]  # fmt: skip

TEXTS = [
    case("csv: nothing", b"", 422, "unreadable_data"),
    case("csv: zeros", bytes(1000), 422, "unreadable_data"),
    case("csv: UTF-16", "y_true,y_pred\n0,1\n".encode("utf-16"), 422, "unreadable_data"),
    case("csv: a BOM", b"\xef\xbb\xbfy_true,y_pred\n0,1\n1,1\n", 200, None),
    case("csv: a line too long", b"y_true,y_pred\n0,1,2\n", 422, "unreadable_data"),
    case("csv: a line too short", b"y_true,y_pred\n0\n", 422, "unreadable_data"),
    case("csv: an open quote", b'y_true,y_pred\n"0,1\n', 422, "unreadable_data"),
    case("csv: semicolons and no text", b"\xff;\xfe\n", 422, "unreadable_data"),
    case("csv: no rows", b"y_true,y_pred\n", 422, "no_samples"),
    case("csv: no text", b"y_true,y_pred\n\xff,\xfe\n", 422, "unreadable_data"),
    case("csv: a text among scores", b"y_true,score\n0,0.5\n1,high\n", 422, "not_numbers", SCORES),
    case("csv: a missing score", b"y_true,score\n0,0.5\n1,\n", 422, "missing_value", SCORES),
    case("csv: a missing label", b"y_true,y_pred\na,b\n,b\n", 422, "missing_value"),
    case("gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\0", 422, "unreadable_data"),
    case("JSON", b'{"y_true": [0, 1]}', 422, "unreadable_data"),
    case("a picture", b"\x89PNG\r\n\x1a\n" + bytes(100), 422, "unreadable_data"),
    case("parquet: nothing but the start", b"PAR1", 422, "unreadable_data"),
    case("parquet: start and end", b"PAR1" + bytes(4) + b"PAR1", 422, "unreadable_data"),
    case("parquet: half of it", parquet(TWO)[:200], 422, "unreadable_data"),
    case("parquet: the middle is gone", parquet(TWO)[:60] + b"\xaa" * 100 + parquet(TWO)[160:], 422, "unreadable_data"),
]  # fmt: skip


def unnamed(write: Callable[[Columns], bytes], name: str) -> list[Case]:
    rates: Columns = {"y_true": ["cat", "dog", "cat"], "cat": [0.9, 0.2, 0.6], "dog": [0.1, 0.8, 0.4]}
    decided: Columns = {"y_true": ["cat", "dog", "cat"], "y_pred": ["cat", "dog", "dog"]}
    images, ages = ["1.png", "2.png", "3.png"], [0.0, 0.0, 0.0]
    declared = {**PROBABILITIES, "labels": ["cat", "dog"]}
    index = {"__index_level_0__": [7, 8, 9], "Unnamed: 0": [0, 1, 2]}
    return [
        case(f"{name}: a path beside predictions", write({**decided, "image": images}), 422, "unknown_column"),
        case(f"{name}: a path beside classes", write({**rates, "image": images}), 422, "unknown_column", PROBABILITIES),
        case(f"{name}: a number beside classes", write({**rates, "age": ages}), 422, "unknown_column", PROBABILITIES),
        case(f"{name}: a number beside named classes", write({**rates, "age": ages}), 422, "unknown_column", declared),
        case(f"{name}: decisions beside classes", write({**rates, "y_pred": images}), 422, "unknown_column", PROBABILITIES),
        case(f"{name}: classes beside scores", write({**rates, "score": ages}), 422, "unknown_column", SCORES),
        case(f"{name}: an index beside classes", write({**rates, **index}), 200, None, PROBABILITIES),
        case(f"{name}: an index beside predictions", write({**decided, **index}), 200, None),
        case(f"{name}: a class that does not occur, named", write({**rates, "bird": ages}), 200, None, {**PROBABILITIES, "labels": ["cat", "dog", "bird"]}),
    ]  # fmt: skip


def csv(columns: Columns) -> bytes:
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    return "\n".join(lines).encode()


CASES = [
    *NPZ,
    *ARROW,
    *TEXTS,
    *unnamed(parquet, "parquet"),
    *unnamed(csv, "csv"),
    *unnamed(lambda columns: npz(**columns), "npz"),
    case("csv: an index without a name", b",y_true,y_pred\n0,a,b\n1,b,b\n", 200, None),
    # Each takes as long as all others: they come last, and so among what is slow.
    *BOMBS,
]
