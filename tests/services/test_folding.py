"""Probabilities folded part by part: what becomes of the files when a part cannot be read."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from app.api.bodies.parsing import parse_value
from app.api.v1.requests.evaluations import EvaluationRequest
from app.domain.inputs.content import DataFacts
from app.domain.inputs.matrices import MatrixInput
from app.domain.options import Options
from app.services.evaluate.folding import folded_report


def part(seed: int) -> MatrixInput:
    random = np.random.default_rng(seed)
    p = random.random(3000)
    given = {
        "kind": "probabilities",
        "labels": ["0", "1"],
        "y_true": (random.random(3000) < p).astype(int).astype(str).tolist(),
        "probabilities": np.column_stack([1 - p, p]).tolist(),
    }
    source = parse_value({"input": given}, EvaluationRequest).to_domain().source
    assert isinstance(source, MatrixInput)
    return source


def test_an_error_while_reading_leaves_no_files(tmp_path: Path) -> None:
    seen: list[int] = []

    def parts() -> Iterator[MatrixInput]:
        for seed in range(20):
            yield part(seed)
        seen.append(len([*tmp_path.rglob("*")]))
        raise OSError("the place of storage does not answer")

    def finished() -> DataFacts:
        raise AssertionError("not everything was read")

    with pytest.raises(OSError, match="does not answer"):
        folded_report(parts(), Options(), finished=finished, budget=1 << 16, folder=tmp_path)
    assert seen[0] > 0
    assert [*tmp_path.rglob("*")] == []
