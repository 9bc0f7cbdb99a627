"""The figures of the papers: drawn again as specifications, with the numbers that the papers print."""

import re
from collections.abc import Iterator
from pathlib import Path

import prevail
import pytest
from pydantic import SecretStr

from app.settings import Settings
from examples.figures.draw import BEGIN, END, HERE, Drawer, everything, table
from tests.serving import Served

# What the metrics are is known by their witnesses.
pytestmark = pytest.mark.slow
LARGEST = 100_000
# Drawn for the README of the project.
OF_THE_PROJECT = {"readme-light", "readme-dark"}


@pytest.fixture(scope="module")
def drawn(database_url: str) -> Iterator[Drawer]:
    with Served(Settings(database_url=SecretStr(database_url))) as url, prevail.Client(url) as service:
        yield everything(service)


def test_every_number_is_the_one_in_print(drawn: Drawer) -> None:
    assert len(drawn.numbers) > 30
    assert [number for number in drawn.numbers if not number.agrees] == []


def test_the_table_is_up_to_date(drawn: Drawer) -> None:
    shown = (HERE / "README.md").read_text().split(BEGIN)[1].split(END)[0]
    assert shown.strip() == table(drawn.numbers)


def test_every_figure_has_a_picture_that_the_page_shows(drawn: Drawer) -> None:
    pictures = {path.stem for path in HERE.iterdir() if path.suffix == ".svg"}
    assert pictures == drawn.specifications.keys() | OF_THE_PROJECT
    shown = re.findall(r"!\[.+\]\((.+)\)", (HERE / "README.md").read_text())
    assert {Path(one).stem for one in shown} == drawn.specifications.keys()
    for one in shown:
        assert (HERE / one).stat().st_size < LARGEST


def test_h_tells_the_two_classifiers_apart_most(drawn: Drawer) -> None:
    """Wu & Cannistraci (2025), fig. 2d: in the order of the differences, and what accuracy does not show."""
    rows = [row for one in _rows(drawn.specifications["001-2c"]) for row in [one] if "difference" in row]
    differences = {row["metric"]: row["difference"] for row in rows}
    harmonic, geometric = (differences[f"{kind} mean of the recalls"] for kind in ("Harmonic", "Geometric"))
    assert harmonic > geometric > differences["Balanced accuracy"] > 0.05
    assert abs(differences["Accuracy"]) < 0.02
    assert differences["Recall of positive"] < 0


def _rows(specification: object) -> Iterator[dict]:  # type: ignore[type-arg]
    if isinstance(specification, dict):
        for name, value in specification.items():
            if name == "values":
                yield from (row for row in value if isinstance(row, dict))
            else:
                yield from _rows(value)
    elif isinstance(specification, list):
        for value in specification:
            yield from _rows(value)
