"""docs/reference/peers.md is what the names of other libraries come to, and no name of theirs is missing."""

import pytest

from app.domain.expressions.expressions import parse, render
from app.kernel.metrics.card import Inputs
from tests.bank import each
from tests.papers import routes
from tests.peers import PAGE, PEERS, Row, difference, names_of, page, read_rows, same_labels

ROWS = read_rows()
NAMES = [f"{row.peer} {row.names[:60]}" for row in ROWS]
# What is named in answers beside metrics: members of requests and answers, and parameters.
MEMBERS = {
    "kind: sets",
    "input",
    "kind: clustering",
    "interpretation",
    "intervals",
    "n_samples",
    "curve",
    "area",
    "kind: folds",
    "kind: multilabel",
    "kind: ranking",
    "proportion_interval",
    "max_fpr",
}


def of_kind(kind: str) -> list[Row]:
    return [row for row in ROWS if row.check.partition(":")[0] == kind]


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("peer", PEERS)
def test_no_name_is_missing(peer: str) -> None:
    """A release that brings a name fails here: give it a row in tests/data/peers.csv."""
    listed = [name for row in ROWS if row.peer == peer for name in row.functions]
    assert names_of(peer) - set(listed) == set()
    whole = [row.names for row in ROWS if row.peer == peer]
    assert len(whole) == len(set(whole))


@each("row", of_kind("measured"), ids=[f"{r.peer} {r.names}" for r in of_kind("measured")])
def test_values_are_theirs(row: Row) -> None:
    assert difference(row) <= row.agreement


@each("row", of_kind("labels"), ids=[row.names for row in of_kind("labels")])
def test_words_are_theirs(row: Row) -> None:
    assert same_labels(row)


@each("row", ROWS, ids=NAMES)
def test_what_answers_a_name_exists(row: Row) -> None:
    kind, _, rest = row.check.partition(":")
    assert (row.answer == "out") == (kind == "reason")
    assert kind in {"measured", "labels", "test", "as", "reason"}
    if kind in {"test", "as"}:
        assert row.within
    if kind == "reason":
        assert len(rest) > 20
    for text in row.answer.split("`")[1::2]:
        if "/v1/" in text:
            assert text in routes()
        elif text not in MEMBERS:
            assert render(parse(text, ["0", "1"], 1, inputs=frozenset(Inputs)), ["0", "1"])
