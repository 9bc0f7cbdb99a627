"""Probabilities and scores folded part by part: files when a part cannot be read, and states that travel."""

import pickle
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from app.api.bodies.parsing import parse_value
from app.api.v1.requests.evaluations import EvaluationRequest
from app.domain.inputs.content import DataFacts
from app.services.evaluate.evaluations import NewEvaluation, with_data
from app.services.evaluate.folding.scores import Folding

READ: DataFacts = {"uri": "/data", "format": "csv", "rows": 3000, "files": 1, "bytes": 1, "digest": ""}


def part(seed: int) -> NewEvaluation:
    random = np.random.default_rng(seed)
    p = random.random(3000)
    given = {
        "kind": "probabilities",
        "labels": ["0", "1"],
        "y_true": (random.random(3000) < p).astype(int).astype(str).tolist(),
        "probabilities": np.column_stack([1 - p, p]).tolist(),
    }
    return with_data(parse_value({"input": given}, EvaluationRequest).to_domain(), READ)


def test_an_error_while_reading_leaves_no_files(tmp_path: Path) -> None:
    seen: list[int] = []

    def read_in_vain() -> None:
        with closing(Folding(1 << 16, tmp_path)) as fold:
            for seed in range(20):
                fold.add(part(seed))
            seen.append(len([*tmp_path.rglob("*")]))
            raise OSError("the place of storage does not answer")

    with pytest.raises(OSError, match="does not answer"):
        read_in_vain()
    assert seen[0] > 0
    assert [*tmp_path.rglob("*")] == []


def of_scores(classes: int, seed: int) -> NewEvaluation:
    """Scores of which those of one part alone lie outside of 0 and 1."""
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, 300)
    rows = random.random((300, classes)) + 2.0 * (seed == 3)
    given = {
        "kind": "scores",
        "labels": ["a", "b", "c"][:classes],
        "y_true": [["a", "b", "c"][code] for code in y],
        "scores": (rows[:, 0] if classes == 2 else rows).tolist(),
    }
    request = {"input": given, "options": {"intervals": "headline"}}
    return with_data(parse_value(request, EvaluationRequest).to_domain(), {**READ, "rows": 300})


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_folded_apart_are_those_folded_together(classes: int, tmp_path: Path) -> None:
    found = []
    for order, travels in ((range(6), False), ((4, 3, 0, 5, 1, 2), True)):
        with closing(Folding(1 << 12, tmp_path)) as whole:
            for seed in order:
                state = Folding(1 << 20, None)
                state.add(of_scores(classes, seed))
                whole.merge(pickle.loads(pickle.dumps(state)) if travels else state)  # noqa: S301 - its own
            found.append(whole.finish({**READ, "rows": whole.rows}))
    first, second = found
    assert first.report is not None
    assert second.report is not None
    assert first.source.n_samples == 6 * 300
    assert first.source.facts == second.source.facts
    assert first.source.facts.get("threshold") == (0.0 if classes == 2 else None)
    np.testing.assert_array_equal(first.source.counts, second.source.counts)
    assert repr(first.report.of_samples) == repr(second.report.of_samples)
