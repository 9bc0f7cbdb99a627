"""One data set of every kind and design, sent whole and streamed: both answers, member by member."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.api.answers import write_json
from app.api.bodies.referenced import Asked, PartsOfData, read_data
from app.api.v1.requests.referenced import with_columns, with_parts
from app.domain.data import DataFormat, DataReference
from app.outbound.data import DataPlaces
from app.services.evaluate.evaluations import evaluate_alone
from tests.engine import ENGINE

Json = dict[str, Any]
ROWS, BUDGET = 3000, 1 << 22
KINDS = {
    "probabilities": ["no", "yes"],
    "probabilities of three": ["a", "b", "c"],
    "scores": ["no", "yes"],
    "multilabel": ["x", "y", "z"],
    "multilabel with probabilities": ["x", "y", "z"],
}
DESIGNS = (
    "plain",
    pytest.param("weights", marks=pytest.mark.slow),
    pytest.param("groups", marks=pytest.mark.slow),
    "weights and groups",
)


def columns_of(kind: str, labels: list[str], random: np.random.Generator, alike: Any) -> Json:
    """Columns by what `columns` calls them; rows of a group are alike."""
    size = len(labels)
    if kind.startswith("multilabel"):
        truth = (random.normal(size=(ROWS, 1)) + random.normal(size=(ROWS, size)) > [0.0, 0.5, 1.5])[alike]
        shares = (1.0 / (1.0 + np.exp(-random.normal(size=truth.shape) - 1.5 * truth))).round(2)
        name, said = ("probabilities", shares) if "probabilities" in kind else ("y_pred", shares > 0.5)
        return {
            **{f"y_true.{label}": truth[:, place] for place, label in enumerate(labels)},
            **{f"{name}.{label}": said[:, place] for place, label in enumerate(labels)},
        }
    truth = random.choice(size, ROWS, p=[0.6, 0.4] if size == 2 else [0.5, 0.3, 0.2])[alike]
    logits = (random.normal(size=(ROWS, size)) + 1.5 * np.eye(size)[truth]).round(2)
    named: Json = {"y_true": np.array(labels)[truth]}
    if kind == "scores":
        return {**named, "score": logits[:, 1]}
    shares = np.exp(logits)
    shares = (shares / shares.sum(axis=1, keepdims=True)).round(2)
    shares[:, 0] = (1.0 - shares[:, 1:].sum(axis=1)).clip(0.0, 1.0)
    return {**named, **{label: shares[:, place] for place, label in enumerate(labels)}}


def both(kind: str, design: str, folder: Path) -> tuple[Json, Json]:
    """The answers about the same rows, whole and streamed."""
    random, labels = np.random.default_rng(5), KINDS[kind]
    groups = random.integers(0, 200, ROWS)
    alike = np.unique(groups, return_index=True, return_inverse=True)[1:]
    own = np.where(np.arange(ROWS) % 2, np.arange(ROWS), alike[0][alike[1]]) if "groups" in design else np.arange(ROWS)
    table = columns_of(kind, labels, random, own)
    table |= {"sample_weight": random.lognormal(sigma=0.5, size=ROWS).round(3)} if "weights" in design else {}
    table |= {"group_id": groups} if "groups" in design else {}
    data, runs = folder / "data", folder / "runs"
    data.mkdir()
    runs.mkdir()
    for start in range(0, ROWS, 500):
        pq.write_table(pa.table(table).slice(start, 500), data / f"{start:05}.parquet")
    of_kind = kind.split(" ")[0]
    body = {"input": {"kind": of_kind, "labels": labels, "data": {"uri": str(data)}}}
    reference, text = DataReference(str(data), DataFormat.PARQUET, None), json.dumps(body).encode()
    places = DataPlaces((str(data),))
    whole = with_columns(text, read_data(places, Asked(reference, of_kind, labels, 1 << 30)))
    parts = PartsOfData(places, Asked(reference, of_kind, labels, 4096, piece_rows=300))
    streamed = with_parts(text, parts, engine=ENGINE, budget=BUDGET, folder=runs)
    first, second = (json.loads(write_json(evaluate_alone(one, None)[0])) for one in (whole, streamed))
    return first, second


def leaves(answer: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value with its path."""
    items = answer.items() if isinstance(answer, dict) else enumerate(answer) if isinstance(answer, list) else None
    if items is None or not answer:
        yield path, answer
        return
    for name, one in items:
        yield from leaves(one, f"{path}/{name}")


# What is drawn: other draws of the same distribution.
OF_DRAWS = ("expected_if_calibrated", "upper_if_calibrated", "p_value")
DRAWN = ("draws", "seed", "monte_carlo_error", "reason")
AGAIN = "they need all samples at once, and there are more than were held in memory"


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_report_is_the_same_member_by_member(kind: str, design: str, tmp_path: Path) -> None:
    whole, streamed = both(kind, design, tmp_path)
    gaps: list[dict[tuple[str, str | None], str]] = [
        {(gap["metric"], gap.get("label")): gap["code"] for gap in answer.pop("undefined")}
        for answer in (whole, streamed)
    ]
    left_out = {key for key, code in gaps[1].items() if code == "not_folded"}
    assert gaps[0] == {key: code for key, code in gaps[1].items() if key not in left_out}
    found = {one["code"]: one for one in streamed.pop("findings")}
    assert not kind.startswith(("probabilities", "scores")) or found.pop("samples_folded")["severity"] == "note"
    assert [*found] == [one["code"] for one in whole.pop("findings")]
    # Resampled whole, with groups; their reason stands in place of limits.
    again = {name for name, one in streamed["intervals"].items() if one.get("reason") == AGAIN}
    assert not again or (kind.startswith("multilabel") and "groups" in design)
    for name in again:
        assert whole["intervals"][name]["draws"] > 0
    ends = {"low", "high"}
    first, second = dict(leaves(whole)), dict(leaves(streamed))
    # What perfect probabilities would show, of many classes.
    without_chance = {
        path.rpartition("/")[0] for path, value in second.items() if value == AGAIN.replace("they need", "it needs")
    }
    for path in sorted(first.keys() | second.keys()):
        *_, name, member = ["", *path.split("/")]
        if (name in again and member in ends) or (
            member in (*DRAWN, *OF_DRAWS) and (name in again or path.rpartition("/")[0] in without_chance)
        ):
            assert second.get(path) is None or member == "reason", path
            continue
        assert path in first, path
        assert path in second, path
        one, other = first[path], second[path]
        if other is None and one is not None:
            assert (member, None) in left_out, path
        elif member in OF_DRAWS:
            assert other == pytest.approx(one, rel=0.1, abs=0.03), path
        elif isinstance(one, float):
            at = path.rpartition("/")[0]
            width = first[f"{at}/high"] - first[f"{at}/low"] if member in ends else 0.0
            assert other == pytest.approx(one, rel=1e-11, abs=max(1e-4 * width, 1e-12)), path
        else:
            assert other == one, path
    for name, _ in left_out:
        assert any(path.endswith(f"/{name}") and value is None for path, value in second.items()), name
