"""Inputs that nobody thought of: every kind in every format, and files with bytes changed. No answer is a 5xx."""

import io
import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from app.api.bodies.uploads import read_columns, read_folds
from app.domain.errors import DomainError
from tests.hostile.cases_files import arrow, csv, npz, parquet
from tests.hostile.harness import Service, compute, form

pytestmark = pytest.mark.slow

# More on demand: PREVAIL is the prefix of settings, so this one has another.
EXAMPLES = int(os.environ.get("HOSTILE_EXAMPLES", "60"))
generated = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
WRITERS: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "parquet": parquet,
    "arrow": arrow,
    "lz4": lambda columns: arrow(columns, "lz4"),
    "stream": lambda columns: arrow(columns, stream=True),
    "csv": csv,
    "npz": lambda columns: npz(**columns),
}
COLUMNS: dict[str, Any] = {
    "y_true": ["cat", "dog", "cat", "bird"],
    "cat": [0.8, 0.1, 0.5, 0.2],
    "dog": [0.1, 0.8, 0.25, 0.2],
    "bird": [0.1, 0.1, 0.25, 0.6],
    "sample_id": [4, 3, 2, 1],
    "fold": ["a", "a", "b", "b"],
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS.keys())
@generated
@given(
    changes=st.lists(
        st.tuples(st.floats(0, 1), st.sampled_from(["flip", "cut", "insert", "zero", "ones"]), st.binary(max_size=9)),
        min_size=1,
        max_size=4,
    )
)
def test_files_with_bytes_changed(
    write: Callable[[dict[str, Any]], bytes], changes: list[tuple[float, str, bytes]]
) -> None:
    data = bytearray(write(COLUMNS))
    for share, change, content in changes:
        place = int(share * len(data))
        size = len(content)
        replaced = {
            "flip": bytes(one ^ 0x55 for one in data[place : place + size]),
            "cut": b"",
            "insert": content + bytes(data[place : place + size]),
            "zero": bytes(size),
            "ones": b"\xff" * size,
        }
        data[place : place + size] = replaced[change]
    try:
        kind, columns, folds = read_folds(io.BytesIO(bytes(data)), None, None)
    except (DomainError, MemoryError):
        # What claims more than there is, is a 413.
        return
    assert kind in ("predictions", "scores", "probabilities")
    assert len(columns["y_true"]) == len(folds) or isinstance(columns["y_true"], np.ndarray)


@generated
@given(
    data=st.binary(max_size=300),
    start=st.sampled_from([b"", b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff", b"PK\x03\x04"]),
)
@example(data=b"", start=b"")
def test_files_of_anything(data: bytes, start: bytes) -> None:
    with pytest.raises(DomainError) as caught:
        read_columns(io.BytesIO(start + data), "predictions", None)
    assert caught.value.detail


# Inputs in JSON and in files, of the right form and of nearly the right one.

LABELS = st.one_of(
    st.sampled_from(["a", "b", "c", "", " ", "\u200b", "é"]),
    st.integers(-2, 3),
    st.booleans(),
    st.sampled_from([0.0, 1.0, 0.5]),
)
NUMBERS = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, -1.0, 1e300, 2.0**60]))
ANYTHING = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.lists(st.integers(), max_size=2))


def column(entries: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(entries, min_size=0, max_size=6)


KINDS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "confusion_matrix": {"matrix": st.lists(column(NUMBERS), max_size=4), "labels": column(LABELS)},
    "binary_counts": dict.fromkeys(("tp", "fn", "fp", "tn"), NUMBERS),
    "predictions": {"y_true": column(LABELS), "y_pred": column(LABELS), "sample_weight": column(NUMBERS)},
    "scores": {"y_true": column(LABELS), "scores": column(NUMBERS), "threshold": NUMBERS},
    "probabilities": {"y_true": column(LABELS), "probabilities": st.lists(column(NUMBERS), max_size=5)},
    "folds": {"folds": st.lists(st.fixed_dictionaries({"kind": st.just("predictions"), "y_true": column(LABELS), "y_pred": column(LABELS)}), max_size=3)},
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@generated
@given(data=st.data())
def test_every_kind_in_json(service: Service, kind: str, data: st.DataObject) -> None:
    members = {
        name: data.draw(st.one_of(values, values, values, ANYTHING), name) for name, values in KINDS[kind].items()
    }
    answer = service.send(compute({"kind": kind, **members}))
    assert answer.status in (200, 422), (members, answer.body[:500])
    if answer.status == 422:
        assert answer.codes()
    else:
        assert json.loads(answer.body)["input"]["kind"] == kind


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS.keys())
@settings(parent=generated, max_examples=max(EXAMPLES // 4, 10))
@given(data=st.data())
def test_every_kind_in_files(service: Service, write: Callable[[dict[str, Any]], bytes], data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 5))
    kind = data.draw(st.sampled_from(["predictions", "scores", "probabilities", "folds"]))
    kinds_of_labels: list[st.SearchStrategy[Any]] = [
        st.sampled_from(["a", "b"]),
        st.integers(0, 2),
        st.booleans(),
        st.sampled_from([0.0, 1.0, 0.5]),
    ]
    labels = [
        data.draw(st.lists(data.draw(st.sampled_from(kinds_of_labels)), min_size=size, max_size=size)) for _ in range(2)
    ]
    numbers = [data.draw(st.lists(st.floats(0, 1), min_size=size, max_size=size)) for _ in range(2)]
    columns: dict[str, Any] = {
        "y_true": labels[0],
        "y_pred": labels[1],
        "score": numbers[0],
        "a": numbers[0],
        "b": numbers[1],
        "fold": [0] * size,
    }
    names = data.draw(st.lists(st.sampled_from(sorted(columns)), unique=True, min_size=1))
    answer = service.send(form(write({name: columns[name] for name in names}), {"kind": kind}))
    assert answer.status in (200, 422), answer.body[:500]
