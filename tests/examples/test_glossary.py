"""The glossary: terms in order, and keys that the catalogue has."""

import re
from pathlib import Path

from app.kernel.metrics.catalogue import catalogue

ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (Path(__file__).resolve().parents[2] / "docs" / "reference" / "glossary.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith(("| term", "| ---"))
]


def test_every_metric_of_the_glossary_is_in_the_catalogue() -> None:
    known = {metric.card.key for metric in catalogue().metrics}
    keys = [key for *_, cell in ROWS for key in re.findall(r"`(.+?)`", cell)]
    assert len(keys) > 25
    assert [key for key in keys if key not in known] == []


def test_terms_are_in_order_and_said_in_one_or_two_sentences() -> None:
    terms = [re.sub(r"[^a-z0-9 ]", "", term.lower()) for term, *_ in ROWS]
    assert terms == sorted(terms)
    for _, meaning, _ in ROWS:
        assert 1 <= len(re.findall(r"[.?](?: |$)", meaning)) <= 2, meaning
