"""Curves of the samples of an evaluation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from app.domain.errors import CurveUndefined, UnknownClass
from app.domain.inputs.labels import listed, shown
from app.domain.inputs.matrices import MatrixInput
from app.domain.members import named, typed
from app.kernel.numerics.arrays import Array
from app.kernel.samples.curves import (
    CLASS_CURVES,
    OVERALL_CURVES,
    Curve,
    UndefinedCurve,
    calibration,
    decision,
    isotonic,
    thin,
)
from app.kernel.samples.curves import CurveName as CurveName
from app.kernel.samples.scores import Scores
from app.services.stored import scores_of


@dataclass(frozen=True, slots=True)
class CurveAxes:
    """What the axes are."""

    x: str
    y: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CurvePoints:
    """A curve.

    Attributes:
        label: `null` for a curve of all classes.
        thresholds: Of the points; `null` where a point has none.
        area: On the full data, however few points are given.
        references: Companions over the same x, such as a random order.
        weights: Shares of the samples, for the bins or the probabilities of a calibration curve.
        n_points: Points of the full curve.
    """

    curve: CurveName
    label: str | None = field(metadata=named("class"))
    x: Array = field(metadata=typed(list[float]))
    y: Array = field(metadata=typed(list[float | None]))
    thresholds: Array = field(metadata=typed(list[float | None]))
    area: float | None
    axes: CurveAxes
    references: Mapping[str, Array] = field(metadata=typed(dict[str, list[float]]))
    weights: Array | None = field(metadata=typed(list[float] | None))
    n_points: int


class CalibrationForm(StrEnum):
    """How a calibration curve is made."""

    BINS = "bins"
    ISOTONIC = "isotonic"


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveQuestion:
    """Which curve, of which class, and what it is made with.

    Attributes:
        label: The class; None for all together, or the positive one.
        max_points: Points that are answered at most.
        prevalence: Of decision curves, the share of the class where the decision is taken; as observed when None.
        form: Of calibration curves.
        bins: Of calibration curves with bins.
    """

    name: CurveName
    label: str | None = None
    max_points: int = 1000
    prevalence: float | None = None
    form: CalibrationForm = CalibrationForm.BINS
    bins: int = 15


def curve_of(source: MatrixInput, question: CurveQuestion) -> CurvePoints:
    """A curve, thinned.

    Without a label it is the curve of everything where there is one, and else, for two classes, of the positive class.

    Raises:
        UnknownClass: there is no such class, or one has to be named.
        CurveUndefined: the samples have no such curve.
    """
    name = question.name
    code = _class(source, name, question.label)
    try:
        full = _full(scores_of(source.samples, source.positive), code, question)
    except UndefinedCurve as error:
        raise CurveUndefined(f"there is no {name.value} curve: {error}") from error
    if not full.x.size:
        raise CurveUndefined(f"there is no {name.value} curve: it has no points")
    curve = thin(full, question.max_points)
    return CurvePoints(
        curve=name,
        label=None if code is None else source.labels[code],
        x=curve.x,
        y=curve.y,
        thresholds=curve.thresholds,
        area=curve.area,
        axes=CurveAxes(*curve.axes),
        references={name.replace(" ", "_"): values for name, values in curve.references},
        weights=curve.weights,
        n_points=full.x.size,
    )


def _full(scores: Scores, code: int | None, question: CurveQuestion) -> Curve:
    """All points of a curve; ``code`` is the class, None for all together."""
    if question.name is CurveName.CALIBRATION:
        if question.form is CalibrationForm.ISOTONIC:
            return isotonic(scores, code)
        return calibration(scores, code, bins=question.bins)
    if code is None:
        return OVERALL_CURVES[question.name](scores)
    if question.name is CurveName.DECISION:
        return decision(scores, code, prevalence=question.prevalence)
    return CLASS_CURVES[question.name](scores, code)


def _class(source: MatrixInput, name: CurveName, label: str | None) -> int | None:
    labels: Sequence[str] = source.labels
    if label is not None:
        if label not in labels:
            raise UnknownClass(f"expected one of {listed(labels)}, got {shown(label)}")
        if name not in CLASS_CURVES:
            raise UnknownClass(f"the {name.value} curve is one of all classes together: leave the class out")
        return labels.index(label)
    if name in OVERALL_CURVES:
        return None
    if source.positive is None:
        raise UnknownClass(f"the {name.value} curve belongs to one class: name one of {listed(labels)}")
    return source.positive
