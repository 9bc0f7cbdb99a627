"""docs/reference/papers.md is what the places of the papers come to."""

import re

from app.kernel.metrics.catalogue import catalogue
from tests import papers
from tests.bank import each
from tests.papers import MANY, PAGE, THREE, TWO, Row, page, read_rows, routes, service_value

ROWS = read_rows()
FORMULAS = [name for row in ROWS for kind, _, name in [row.check.partition(":")] if kind == "formula"]
# Members of requests and answers that are named as what answers a place.
MEMBERS = {
    "contingency",
    "orientation",
    "folds",
    "cv",
    "references",
    "probabilities",
    "recall_sweep",
    "surface",
    "decisions",
    "recall_orders",
    "class",
    "mcp",
    "divide=places",
}


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


@each("name", sorted(set(FORMULAS)))
def test_formulas_agree_with_fractions(name: str) -> None:
    assert papers.formula_difference(name) <= 1e-12


def test_printed_values_agree_as_far_as_they_are_rounded() -> None:
    for row in ROWS:
        kind, _, prefix = row.check.partition(":")
        if kind in ("printed", "arithmetic"):
            measured = papers.printed_differences if kind == "printed" else papers.arithmetic_differences
            assert measured(prefix)[1] <= 0.5 + 1e-6, row
    assert papers.table_7_difference() == 0


@each("row", ROWS, ids=[f"{row.paper} {row.place} {row.what}" for row in ROWS])
def test_what_answers_a_place_exists(row: Row) -> None:
    """Routes, metrics and expressions; what is out has a reason."""
    kind, _, rest = row.check.partition(":")
    assert (row.answer == "out") == (kind == "reason")
    assert bool(row.within) == (kind == "test")
    assert rest or kind == "table7"
    for name in re.findall(r"`([^`]+)`", row.answer):
        if " /v1/" in name:
            assert name in routes()
        elif name.isidentifier() and name in catalogue().by_name:
            assert catalogue().by_name[name].key
        elif name not in MEMBERS:
            size = 3 if "3,2,1" in name or "@3" in name else 2
            text = name.replace("@3", "@2")
            if "*" not in text or "(" in text:
                assert isinstance(service_value(text, [[9] * size] * size), float)


def test_every_formula_is_in_the_table() -> None:
    assert set(FORMULAS) == TWO.keys() | MANY.keys() | THREE.keys()
