"""Entries that no column may have, in each column of each kind of input: alone, and behind so many that it is large."""

from collections.abc import Iterator, Mapping
from functools import partial

from tests.hostile.harness import COMPUTE, Case, http

# Good entries before the bad one, more than a body that is held in memory.
MANY = {"predictions": 20_000, "scores": 40_000, "probabilities": 20_000}
# By the kind of input: its columns, each with an entry that is fine; ids are counted.
FINE: Mapping[str, Mapping[str, bytes]] = {
    "predictions": {"y_true": b"0", "y_pred": b"1", "sample_ids": b"", "group_ids": b"3", "sample_weight": b"0.5"},
    "scores": {"y_true": b"0", "scores": b"0.25"},
    "probabilities": {"y_true": b"0", "probabilities": b"[0.25, 0.75]"},
}
# What is put in the place of an entry, and what that is called among labels, ids, weights, scores, rows and in a row.
ENTRIES: Mapping[str, tuple[bytes, str]] = {
    "NaN": (b"NaN", "not_a_label not_an_id bad_weight not_finite not_a_row not_finite"),
    "Infinity": (b"Infinity", "not_a_label not_an_id bad_weight not_finite not_a_row not_finite"),
    "minus Infinity": (b"-Infinity", "not_a_label not_an_id bad_weight not_finite not_a_row not_finite"),
    "1e999": (b"1e999", "not_a_label not_an_id bad_weight not_finite not_a_row not_finite"),
    "an integer of 400 digits": (b"9" * 400, "label_too_large not_an_id bad_weight not_finite not_a_row out_of_range"),
    "an integer of 5000 digits": (b"9" * 5000, "invalid_json invalid_json invalid_json invalid_json invalid_json invalid_json"),
    "an integer beyond 64 bits": (b"18446744073709551616", "label_too_large ok total_too_large ok not_a_row out_of_range"),
    "a fraction of a million digits": (b"0." + b"3" * 1_000_000, "not_a_label not_an_id ok ok not_a_row row_sum"),
    "a text": (b'"x"', "mixed_labels ok not_a_number not_a_number not_a_row not_a_number"),
    "null": (b"null", "not_a_label not_an_id not_a_number not_a_number not_a_row not_a_number"),
    "true": (b"true", "not_a_label not_an_id not_a_number not_a_number not_a_row not_a_number"),
    "an array": (b"[0]", "not_a_label not_an_id not_a_number not_a_number ragged_row not_a_number"),
    "an empty array": (b"[]", "not_a_label not_an_id not_a_number not_a_number ragged_row not_a_number"),
    "an object": (b'{"a": 1}', "not_a_label not_an_id not_a_number not_a_number not_a_row not_a_number"),
}  # fmt: skip
PLACES = {
    "y_true": (0, b"%b"),
    "y_pred": (0, b"%b"),
    "sample_ids": (1, b"%b"),
    "group_ids": (1, b"%b"),
    "sample_weight": (2, b"%b"),
    "scores": (3, b"%b"),
    "probabilities": (4, b"%b"),
    "probabilities of a row": (5, b"[%b, 0.5]"),
}


def request(kind: str, changed: str, entry: bytes, times: int) -> bytes:
    """A request of columns of so many entries, one of another class, and in one column this entry as the last."""
    members = []
    for name, usual in FINE[kind].items():
        listed = [usual] * times
        if not usual:
            listed = [b"%d" % index for index in range(times)]
        other = {b"0": b"1", b"1": b"0", b"3": b"4"}.get(usual, usual or b"-1")
        last = entry if name == changed else usual or b"-2"
        members.append(b'"%b": [%b]' % (name.encode(), b",".join([*listed, other, last])))
    return http("POST", COMPUTE, b'{"input": {"kind": "%b", %b}}' % (kind.encode(), b", ".join(members)))


def in_columns() -> Iterator[Case]:
    for kind, columns in FINE.items():
        for place, (group, form) in PLACES.items():
            column = place.partition(" ")[0]
            if column not in columns or (column == "y_true" and kind != "predictions"):
                continue
            for name, (entry, codes) in ENTRIES.items():
                code = codes.split()[group]
                status = 200 if code == "ok" else 400 if code == "invalid_json" else 422
                for size, times in (("one of three", 1), ("behind many", MANY[kind])):
                    sent = partial(request, kind, column, form % entry, times)
                    yield Case(f"{place}: {name}, {size}", sent, status, None if code == "ok" else code)


CASES = [*in_columns()]
