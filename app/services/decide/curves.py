"""Curves of the samples of an evaluation."""

from collections.abc import Sequence

from app.domain.errors import CurveUndefined, UnknownClass
from app.domain.inputs.labels import listed, shown
from app.domain.inputs.matrices import MatrixInput
from app.kernel.samples.curves import CLASS_CURVES, OVERALL_CURVES, Curve, CurveName, UndefinedCurve, thin
from app.services.stored import scores_of


def curve_of(source: MatrixInput, name: CurveName, label: str | None, max_points: int) -> tuple[Curve, str | None, int]:
    """A curve, thinned; the class that it belongs to, if it belongs to one; and how many points it had before.

    Without a label it is the curve of everything where there is one, and else, for two classes, of the positive class.

    Raises:
        UnknownClass: there is no such class, or one has to be named.
        CurveUndefined: the samples have no such curve.
    """
    code = _class(source, name, label)
    scores = scores_of(source)
    try:
        curve = OVERALL_CURVES[name](scores) if code is None else CLASS_CURVES[name](scores, code)
    except UndefinedCurve as error:
        raise CurveUndefined(f"there is no {name.value} curve: {error}") from error
    if not curve.x.size:
        raise CurveUndefined(f"there is no {name.value} curve: it has no points")
    return thin(curve, max_points), None if code is None else source.labels[code], curve.x.size


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
