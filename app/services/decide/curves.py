"""Curves of the samples of an evaluation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.domain.errors import CurveUndefined, UnknownClass
from app.domain.inputs.labels import listed, shown
from app.domain.inputs.matrices import MatrixInput
from app.domain.members import named, typed
from app.kernel.numerics.arrays import Array
from app.kernel.samples.curves import CLASS_CURVES, OVERALL_CURVES, UndefinedCurve, thin
from app.kernel.samples.curves import CurveName as CurveName
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
        weights: Shares of the samples, for the bins of a calibration curve.
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


def curve_of(source: MatrixInput, name: CurveName, label: str | None, max_points: int) -> CurvePoints:
    """A curve, thinned.

    Without a label it is the curve of everything where there is one, and else, for two classes, of the positive class.

    Raises:
        UnknownClass: there is no such class, or one has to be named.
        CurveUndefined: the samples have no such curve.
    """
    code = _class(source, name, label)
    scores = scores_of(source)
    try:
        full = OVERALL_CURVES[name](scores) if code is None else CLASS_CURVES[name](scores, code)
    except UndefinedCurve as error:
        raise CurveUndefined(f"there is no {name.value} curve: {error}") from error
    if not full.x.size:
        raise CurveUndefined(f"there is no {name.value} curve: it has no points")
    curve = thin(full, max_points)
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
