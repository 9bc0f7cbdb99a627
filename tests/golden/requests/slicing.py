"""Runs judged slice by slice."""

from dataclasses import replace
from typing import Any

from tests.golden.calls import Call, get, keep, post
from tests.golden.data import Json, groups, labelled, scored, weights

_SITES: list[str | None] = [*["A"] * 60, *["B"] * 50, *["C"] * 30, *[None] * 10]
_AGES = [20 + (7 * place) % 60 for place in range(150)]
_SEXES = ["f" if place % 3 else "m" for place in range(150)]
_ATTRIBUTES: Json = {"site": _SITES, "sex": _SEXES, "age": _AGES, "screened": [place % 2 == 0 for place in range(150)]}


def _slices(name: str, run: str, **members: Any) -> Call:
    return post(name, f"/v1/evaluations/${run}/slices", {"minimum_samples": 20, **members})


SLICES = [
    keep("two", labelled(150, (3, 2), 0.75, 6, attributes=_ATTRIBUTES), "two"),
    keep("three", labelled(150, (5, 3, 2), 0.8, 7, attributes=_ATTRIBUTES), "three"),
    keep("soft", scored(150, (3, 2), 0.7, 1, attributes=_ATTRIBUTES), "soft"),
    keep("weighted", labelled(150, (3, 2), 0.7, 8, attributes=_ATTRIBUTES, sample_weight=weights(150)), "weighted"),
    keep("grouped", labelled(150, (3, 2), 0.7, 9, attributes=_ATTRIBUTES, group_ids=groups(150)), "grouped"),
    keep("plain", labelled(150, (3, 2), 0.7, 9), "plain"),
    _slices("by-site", "two", by=["site"]),
    _slices("overall", "two", by=["sex", "screened"], reference="overall", metrics=["recall@B", "mcc"]),
    _slices("against-a-slice", "two", by=["site"], reference={"sex": "m"}, metrics=["accuracy", "f1@B"]),
    _slices("crossed", "two", by=["site", "sex", "age"], depth=2, bins={"age": [40]}, metrics=["recall@B"]),
    get("drawn", "/v1/evaluations/$two/slices/plots/slices.json", by=["sex", "screened"], metric="recall@B"),
    _slices("quantiles", "three", by=["age"], bins={"age": 3}),
    _slices("search", "two", search={"metric": "recall@B"}, bins={"age": 2}),
    _slices("probabilities", "soft", by=["sex"], metrics=["log_loss", "roc_auc@B", "expected_calibration_error"]),
    _slices("weights", "weighted", by=["sex"], metrics=["recall@B", "precision@B", "h_mean"]),
    _slices("groups", "grouped", by=["sex"], metrics=["recall@B", "precision@B", "h_mean"]),
    post("input", "/v1/slices", {"input": labelled(150, (3, 2), 0.75, 6, attributes=_ATTRIBUTES), "by": ["sex"]}),
    *(
        replace(_slices(name, "two", by=["site"], metrics=["recall@B"]), headers={"Accept": media})
        for name, media in (("text", "text/plain"), ("markdown", "text/markdown"), ("csv", "text/csv"))
    ),
    get("one-slice", "/v1/evaluations/$soft", slice='site in ("A", "B"), age<50'),
    get("one-slice-of-groups", "/v1/evaluations/$grouped", slice="site=null"),
    get("one-slice-without-samples", "/v1/evaluations/$two", slice="age>200"),
    get("no-slice", "/v1/evaluations/$two", slice="site=A"),
    _slices("no-attributes", "plain", by=["sex"]),
    _slices("no-such-attribute", "two", by=["sexx"]),
    _slices("no-such-slice", "two", by=["sex"], reference={"site": "Z"}),
    _slices("no-bins-of-texts", "two", by=["sex"], bins={"sex": 2}),
    _slices("no-rate", "two", search={"metric": "h_mean"}),
]
