"""Runs with attributes for tests of slices."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.inputs.attributes import read_attributes
from app.domain.inputs.columns import designed
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput, class_counts
from app.domain.inputs.samples import Samples

Attributes = dict[str, NDArray[Any]]
LABELS = ("healthy", "D")


def classified(
    truth: NDArray[Any],
    predicted: NDArray[Any],
    attributes: Attributes,
    labels: tuple[str, ...] = LABELS,
    *,
    weights: NDArray[Any] | None = None,
    groups: NDArray[Any] | None = None,
    outputs: NDArray[Any] | None = None,
) -> MatrixInput:
    """Predicted classes, or probabilities, of samples with attributes."""
    sent = Samples(
        truth=truth.astype(np.int64),
        predicted=predicted.astype(np.int64),
        outputs=outputs,
        weights=weights,
        groups=groups,
        attributes=read_attributes({name: column.tolist() for name, column in attributes.items()}, truth.size, ""),
    )
    samples, facts = designed(sent)
    return MatrixInput(
        kind="predictions" if outputs is None else "probabilities",
        labels=labels,
        positive=1 if len(labels) == 2 else None,
        content=Content.counts if samples.weights is None else Content.weights,
        counts=class_counts(samples, len(labels)),
        facts=facts,
        samples=samples,
    )


def clinic(size: int = 3000, seed: int = 5) -> MatrixInput:
    """Patients of three sites: D is rare at B, and at C women who have it are missed; site F has nine patients."""
    random = np.random.default_rng(seed)
    site = random.choice(["A", "B", "C"], size, p=[0.5, 0.3, 0.2])
    site[:9] = "F"
    sex = random.choice(["f", "m"], size)
    age = random.integers(20, 90, size)
    truth = random.random(size) < np.where(site == "B", 0.05, 0.3)
    caught = random.random(size) < np.where((site == "C") & (sex == "f"), 0.35, 0.85)
    predicted = np.where(truth, caught, random.random(size) < 0.06)
    return classified(truth, predicted, {"site": site, "sex": sex, "age": age})


def attributes_of(source: MatrixInput) -> Attributes:
    """Values of the attributes of a run, sample by sample."""
    assert source.samples is not None
    assert source.samples.attributes is not None
    known = source.samples.attributes.by_name
    return {name: np.array(one.values)[one.codes] for name, one in known.items()}
