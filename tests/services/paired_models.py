"""Runs on the same samples, compared in memory and streamed."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from app.domain.inputs.classified import Probabilities, Scores
from app.domain.inputs.matrices import MatrixInput
from app.services.compare.answers import RunComparison
from app.services.compare.comparisons import (
    AskedComparison,
    compare_again,
)
from app.services.compare.elsewhere import Rereading
from app.services.runs.pairing import KeptSamples
from tests.engine import ENGINE
from tests.services.referenced import Parts, asked_of_sources

ROWS = 700
RANDOM = np.random.default_rng(1988)
DATA: Any = {"data": {"columns": {"sample_id": "id"}}}


class Model(NamedTuple):
    """One run: rows in its order, what it says of them, and its classes in its order."""

    rows: NDArray[np.int64]
    truth: NDArray[np.int64]
    outputs: NDArray[np.float64]
    labels: list[str]
    groups: NDArray[Any] | None = None
    weights: NDArray[np.float64] | None = None

    def source(self, chosen: slice) -> MatrixInput:
        """Some of its samples."""
        rows = self.rows[chosen]
        names = np.array([f"c{code}" for code in range(self.outputs.shape[1])])
        groups = None if self.groups is None else self.groups[rows].tolist()
        weights = None if self.weights is None else self.weights[rows].tolist()
        in_parts = rows.size < self.rows.size
        truth = names[self.truth[rows]].tolist()
        columns = [int(label[1:]) for label in self.labels]
        outputs = self.outputs[rows][:, columns]
        given: dict[str, Any] = {
            "y_true": truth,
            "probabilities" if self.is_sure else "scores": outputs,
            "labels": self.labels,
            "sample_ids": rows.tolist(),
            "group_ids": groups,
            "sample_weight": weights,
            # All of a part may weigh nothing.
            "part": in_parts,
        }
        found = (Probabilities if self.is_sure else Scores)(**given).read("/input")
        return replace(found, facts={**found.facts, **DATA})

    @property
    def is_sure(self) -> bool:
        """Are these probabilities?"""
        return bool(self.outputs.min() >= 0.0)

    def parts(self) -> list[MatrixInput]:
        """All of them, in parts of any size, one of a single row, in any order."""
        cuts = np.unique([1, *RANDOM.choice(np.arange(2, self.rows.size), RANDOM.integers(0, 30), replace=False)])
        ends = [0, *cuts.tolist(), self.rows.size]
        parts = [self.source(slice(start, stop)) for start, stop in pairwise(ends)]
        return [parts[place] for place in RANDOM.permutation(len(parts))]


def models(classes: int, count: int = 2, *, scores: bool = False) -> list[Model]:
    """Runs on most of the samples in any order, their classes in any order; some probabilities are the same."""
    truth = np.concatenate([np.arange(classes), RANDOM.integers(0, classes, ROWS - classes)])
    made = []
    for skill in np.linspace(0.5, 0.8, count):
        outputs = RANDOM.dirichlet(np.ones(classes), ROWS) * (1.0 - skill) + skill * np.eye(classes)[
            truth
        ] * RANDOM.random((ROWS, 1))
        outputs /= outputs.sum(axis=1)[:, None]
        outputs[::4] = outputs[RANDOM.integers(0, 9, outputs[::4].shape[0])]
        rows = RANDOM.permutation(ROWS)[: ROWS - 15]
        labels = RANDOM.permutation([f"c{code}" for code in range(classes)]).tolist()
        made.append(Model(rows, truth, 4.0 * outputs - 1.0 if scores else outputs, labels))
    return made


def asked_of(runs: Sequence[Model], metrics: Sequence[str], **others: Any) -> tuple[AskedComparison, KeptSamples]:
    """A comparison of runs, and their samples in memory."""
    return asked_of_sources([run.source(slice(None)) for run in runs], metrics, minimum_matched=0.9, **others)


def streamed(asked: AskedComparison, runs: Sequence[Model], folder: Path, memory: int = 120_000) -> RunComparison:
    """The same where the samples are streamed."""
    parts = Parts({record.id: run.parts() for record, run in zip(asked.runs.records, runs, strict=True)})
    reading = Rereading(parts, memory, folder, ENGINE)
    return compare_again(asked, KeptSamples(), reading, identifier=asked.runs.records[0].id)


def check_close(found: Any, expected: Any, place: str = "", *, rel: float = 1e-11) -> None:
    """The same but for the last digits of numbers; of more than these where said, but not of values of the runs."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), place
        if rel > 1e-11 and expected.get("low") is not None and expected.get("high") is not None:
            width = expected["high"] - expected["low"]
            assert [found["low"], found["high"]] == pytest.approx(
                [expected["low"], expected["high"]], abs=1e-4 * width, nan_ok=True
            ), place
        for name, value in expected.items():
            exact = name in ("values", "difference")
            check_close(found[name], value, f"{place}/{name}", rel=1e-11 if exact else rel)
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected), place
        for number, value in enumerate(expected):
            check_close(found[number], value, f"{place}/{number}", rel=rel)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=rel, abs=max(1e-13, rel**1.5), nan_ok=True), place
    else:
        assert found == expected, place


LOSSES = [
    "log_loss",
    "log_loss(clip=0.01)",
    "brier_score",
    "spherical_score",
    "balanced_log_loss",
    "balanced_brier_score",
    "ranked_probability_score",
    "au_mcp",
    "au_imcp",
    "mean_phi@*",
    "fraction_correct_certain",
    "fraction_uncertain",
    "fraction_incorrect_certain",
    "mean(brier_score, log_loss)",
    "mean(mean_phi@*)",
    "brier_skill_score",
    "d2_log_loss",
    "gmean(au_mcp, spherical_score)",
]

# Averages over pairs of classes, and over all scores of all samples.
PAIRS = ["roc_auc_ovo_macro", "roc_auc_ovo_weighted", "roc_auc_ovr_micro", "mean(roc_auc_ovo_macro, roc_auc_ovr_macro)"]

PRECISIONS = ["macro_average_precision", "weighted_average_precision", "micro_average_precision"]

AREAS = ["roc_auc@*", "roc_auc@c1", "roc_gini@c0", "roc_auc_ovr_macro", "roc_auc_ovr_weighted", "mean(roc_auc@*)"]


OF_MATRICES = ["accuracy", "mcc", "recall@*", "macro_f1"]
