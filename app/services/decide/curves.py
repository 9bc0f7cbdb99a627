"""Curves of the samples of an evaluation, with their confidence bands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated
from uuid import UUID

import numpy as np

from app.domain.asked import Level, PointsAtMost, Seed
from app.domain.asked import Limits as Bounds
from app.domain.errors import CurveUndefined, Fault, NoSamples, OutOfReach, UnknownClass
from app.domain.inputs.labels import listed, place_in
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.multilabel import as_classes
from app.domain.members import HIDDEN, LEFT_OUT, SPREAD, named, typed
from app.kernel.numerics.arrays import Array
from app.kernel.samples.curves import (
    CLASS_CURVES,
    OVERALL_CURVES,
    Curve,
    UndefinedCurve,
    calibration,
    decision,
    isotonic,
    macro_det,
    macro_roc,
    pooled,
    thin,
)
from app.kernel.samples.curves import CurveName as CurveName
from app.kernel.samples.scores import Scores
from app.kernel.streamed.rankings import KeptScores
from app.kernel.streamed.rows import NotStreamed
from app.kernel.uncertainty.curve_bands import BandForm as BandForm
from app.kernel.uncertainty.curve_bands import (
    BandSettings,
    band_around,
    bins_band,
    consistency_band,
    fnr_between,
    net_benefit_between,
    precision_between,
    simulated_rates,
    tpr_between,
)
from app.kernel.uncertainty.designs import Sampled
from app.kernel.uncertainty.draws import chosen_seed
from app.kernel.uncertainty.groups import Grouping, expanded_level
from app.kernel.uncertainty.intervals import Limits
from app.kernel.uncertainty.resampling import DRAWS, plan
from app.services.stored import StreamedInput, scores_of

# More would be drawn than anyone sees, and takes room in all resamples.
MOST_POINTS = 2000
BANDED = frozenset({CurveName.ROC, CurveName.PR, CurveName.DET, CurveName.CALIBRATION, CurveName.DECISION})


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveBand:
    """Limits around a curve.

    Attributes:
        form: `pointwise`: each point of the curve of the population lies within with this level; `simultaneous`: all
            of it does.
        method: `posterior` of the rates of both classes, `wilson` or `clopper_pearson` of the frequency in each bin, or
            `consistency`: where the curve would lie if all probabilities were right. Names of samples in weights or in
            groups begin as those of intervals do.
        draws: Resamples, or simulated sets of outcomes; 0 where there are none.
        seed: Seed of the draws; `null` where there are none.
    """

    form: BandForm
    level: float
    method: str
    draws: int = 0
    seed: int | None = None


_BINS, _LEVEL = 15, 0.95
# In place of a class: all classes together, or whichever class is predicted.
MICRO, MACRO, PREDICTED = "micro", "macro", "predicted"
_MICRO_CURVES = frozenset({CurveName.ROC, CurveName.PR, CurveName.DET, CurveName.GAIN, CurveName.LIFT})
# Those that are kept of streamed samples.
_KEPT = (CurveName.ROC, CurveName.PR, CurveName.DET, CurveName.CALIBRATION, CurveName.DECISION, CurveName.LIFT)
_MACRO_CURVES = {CurveName.ROC: macro_roc, CurveName.DET: macro_det}


@dataclass(frozen=True, slots=True)
class CurveAxes:
    """Names of the axes."""

    x: str
    y: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CurvePoints:
    """A curve.

    Attributes:
        label: `null` for a curve of all classes or of the predicted one; `micro` or `macro` for an average of them.
        thresholds: Threshold of each point; `null` where a point has none.
        area: Area under the curve of all data, however few points are answered.
        references: Reference curves over the same x, such as that of a random order.
        levels: Heights that mean something at every x: of MCP and IMCP curves the two thresholds of the paper.
        low: Lower end of the band; `null` at a point without one.
        high: Upper end.
        band: What the band says and how it was made.
        weights: Shares of the samples, for the bins or the probabilities of a calibration curve.
        classes: Of MCP and IMCP curves, whose points are bars: the class of each; `null` at the two ends.
        widths: Of these bars, before points were left out; they add up to 1 over all classes.
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
    levels: Mapping[str, float] | None = field(default=None, metadata=LEFT_OUT)
    low: Array | None = field(default=None, metadata=LEFT_OUT | typed(list[float | None]))
    high: Array | None = field(default=None, metadata=LEFT_OUT | typed(list[float | None]))
    band: CurveBand | None = field(default=None, metadata=LEFT_OUT)
    weights: Array | None = field(metadata=typed(list[float] | None))
    classes: Sequence[str | None] | None = field(default=None, metadata=LEFT_OUT)
    widths: Array | None = field(default=None, metadata=LEFT_OUT | typed(list[float | None]))
    n_points: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunCurve:
    """The curve of another evaluation, made in the same way."""

    evaluation_id: UUID
    points: CurvePoints = field(metadata=SPREAD)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunCurves:
    """The curve of an evaluation, and of others to be drawn with it.

    Attributes:
        others: In the order in which they were asked for.
    """

    points: CurvePoints = field(metadata=SPREAD)
    others: Sequence[RunCurve] | None = field(default=None, metadata=LEFT_OUT | named("with"))


class CalibrationForm(StrEnum):
    """Estimator of a calibration curve: means within bins, or isotonic regression."""

    BINS = "bins"
    ISOTONIC = "isotonic"


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveQuestion:
    """A request for a curve of one class, or of all, with its parameters.

    Attributes:
        label: The class, or `micro`, `macro` or `predicted` where no class is called so; None for all together, or the
            positive one.
        max_points: Points at most.
        prevalence: Decision curves: share of the class where it is used; as observed by default.
        form: Calibration curves: in `bins` of equal width, or `isotonic`, without bins.
        bins: Calibration curves: how many bins, 15 by default.
        band: Limits around the curve: point by point, or of the curve as a whole.
        level: Level of the band, 0.95 by default.
        seed: Seed of the band's resamples.
    """

    name: CurveName = field(metadata=HIDDEN)
    label: str | None = field(default=None, metadata=HIDDEN)
    max_points: PointsAtMost = 1000
    prevalence: Annotated[float, Bounds({"gt": 0, "lt": 1})] | None = None
    form: CalibrationForm | None = None
    bins: Annotated[int, Bounds({"ge": 1, "le": 1000})] | None = None
    band: BandForm | None = None
    level: Level | None = None
    seed: Seed | None = None

    def faults(self) -> list[Fault]:
        """Return the parameters that make no sense for this curve; pointers are the names of the members."""
        name, found = self.name, []
        allowed = {
            "prevalence": name is CurveName.DECISION,
            "form": name is CurveName.CALIBRATION,
            "bins": name is CurveName.CALIBRATION,
            "band": name in BANDED,
        }
        for member, sensible in allowed.items():
            if not sensible and getattr(self, member) is not None:
                found.append(Fault(member, "not_for_this_curve", f"expected none for the {name.value} curve"))
        if self.form is CalibrationForm.ISOTONIC and self.bins is not None:
            found.append(Fault("bins", "not_for_this_curve", "expected none with form=isotonic, which has no bins"))
        if self.band is None:
            members = [member for member in ("level", "seed") if getattr(self, member) is not None]
            found += [Fault(member, "needs_band", "expected it with a band only") for member in members]
        elif self.max_points > MOST_POINTS:
            found.append(Fault("max_points", "too_large", f"expected at most {MOST_POINTS} with a band"))
        return found

    @property
    def bins_made(self) -> int | None:
        """Number of bins of the calibration curve; None for an isotonic one and for other curves."""
        if self.name is not CurveName.CALIBRATION or self.form is CalibrationForm.ISOTONIC:
            return None
        return _BINS if self.bins is None else self.bins


def curves_of(source: MatrixInput, others: Sequence[tuple[UUID, MatrixInput]], question: CurveQuestion) -> RunCurves:
    """The curve of an evaluation and the same one of others. Raises as `curve_of` does, naming the other evaluation."""
    found = []
    for identifier, other in others:
        try:
            found.append(RunCurve(evaluation_id=identifier, points=curve_of(other, question)))
        except (UnknownClass, CurveUndefined) as error:
            raise type(error)(f"{identifier}: {error.detail}") from error
    return RunCurves(points=curve_of(source, question), others=found or None)


def curve_of(source: MatrixInput, question: CurveQuestion) -> CurvePoints:
    """A curve, thinned. That of a label is the one of two classes, the label and its absence.

    Without a label it is the curve of everything where there is one, and else, for two classes, of the positive class;
    that of calibration is of the positive class of two, and else of the predicted class.

    Raises:
        UnknownClass: there is no such class, or one has to be named.
        CurveUndefined: the samples have no such curve.
    """
    name = question.name
    if source.task is not None:
        if question.label is None:
            raise UnknownClass(f"the {name.value} curve belongs to one label: name one of {listed(source.labels)}")
        source = as_classes(source, question.label)
    if isinstance(source, StreamedInput):
        _refuse_beyond_kept(question, source)
    view = _view(source, question)
    try:
        full = view.curve(question)
    except NotStreamed as error:
        raise NoSamples(f"the samples were streamed when they were evaluated: {error}") from error
    except UndefinedCurve as error:
        raise CurveUndefined(f"there is no {name.value} curve: {error}") from error
    if not full.x.size:
        raise CurveUndefined(f"there is no {name.value} curve: it has no points")
    curve = thin(full, question.max_points)
    answer = CurvePoints(
        curve=name,
        label=view.label,
        x=curve.x,
        y=curve.y,
        thresholds=curve.thresholds,
        area=curve.area,
        axes=CurveAxes(*curve.axes),
        references={name.replace(" ", "_"): values for name, values in curve.references},
        levels=dict(curve.levels) or None,
        weights=curve.weights,
        classes=None if curve.codes is None else [*map([*source.labels, None].__getitem__, curve.codes.tolist())],
        widths=curve.widths,
        n_points=full.x.size + view.left_out(name),
    )
    return answer if question.band is None else _with_band(answer, source, view, curve, question)


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """The class that a curve is of, among the samples.

    Attributes:
        label: Of the class; `micro` or `macro`; None for all together.
        code: Of the class; None for all together, or for the mean over the classes.
        entries: What every sample stands for: one entry, or with `micro` one for each class.
    """

    label: str | None
    scores: Scores
    code: int | None
    entries: int = 1

    @property
    def is_mean(self) -> bool:
        """Is it the mean of the curves of all classes?"""
        return self.code is None and self.label is not None

    def left_out(self, name: CurveName) -> int:
        """Points that are not known any more."""
        if name is CurveName.CALIBRATION or self.code is None or not isinstance(self.scores, KeptScores):
            return 0
        return self.scores.ranking(self.code).left_out

    def curve(self, question: CurveQuestion) -> Curve:
        """All points of the curve."""
        if self.is_mean:
            return _MACRO_CURVES[question.name](self.scores)
        if question.name is CurveName.CALIBRATION:
            bins = question.bins_made
            return isotonic(self.scores, self.code) if bins is None else calibration(self.scores, self.code, bins=bins)
        if self.code is None:
            return OVERALL_CURVES[question.name](self.scores)
        if question.name is CurveName.DECISION:
            return decision(self.scores, self.code, prevalence=question.prevalence)
        return CLASS_CURVES[question.name](self.scores, self.code)


def _view(source: MatrixInput, question: CurveQuestion) -> _View:
    label, name = question.label, question.name
    scores = KeptScores.from_json(source.curves) if isinstance(source, StreamedInput) else scores_of(source)
    if label in (MICRO, MACRO) and label not in source.labels:
        if name not in (_MICRO_CURVES if label == MICRO else _MACRO_CURVES):
            raise UnknownClass(f"the {name.value} curve has no {label} average")
        return _View(label, scores, None) if label == MACRO else _View(label, pooled(scores), 1, scores.n_classes)
    if label == PREDICTED and label not in source.labels:
        if name is not CurveName.CALIBRATION:
            raise UnknownClass(f"the {name.value} curve has none of the predicted class")
        return _View(None, scores, None)
    code = _class(source, name, label)
    return _View(None if code is None else source.labels[code], scores, code)


def has_band(source: MatrixInput) -> bool:
    """Return True if a band around calibration in bins can be made.

    It needs the counts of each group in each bin, or every weight, and neither is stored of streamed samples.
    """
    return not (isinstance(source, StreamedInput) and (source.is_grouped or source.is_weighted))


def _refuse_beyond_kept(question: CurveQuestion, source: StreamedInput) -> None:
    """Raise NoSamples for what needs the samples, which were streamed."""
    beyond = [
        what
        for what, is_asked in (
            ("averages over the classes", question.label in (MICRO, MACRO) and question.label not in source.labels),
            ("bands", question.band is not None and question.name is not CurveName.CALIBRATION),
            ("bands of samples in groups or with weights", question.band is not None and not has_band(source)),
            ("calibration without bins", question.form is CalibrationForm.ISOTONIC),
            (f"the {question.name.value} curve", question.name not in _KEPT),
        )
        if is_asked
    ]
    if beyond:
        kept = listed([name.value for name in _KEPT])
        raise NoSamples(
            f"{beyond[0]} cannot be made of samples that were streamed when they were evaluated; of these the curves "
            f"{kept} of a class are saved, with a band for calibration only"
        )


# How heights are read of rates, by the curve.
_HEIGHTS = {
    CurveName.ROC: tpr_between,
    CurveName.DET: fnr_between,
    CurveName.PR: precision_between,
}


def _with_band(
    answer: CurvePoints, source: MatrixInput, view: _View, curve: Curve, question: CurveQuestion
) -> CurvePoints:
    """The answer with limits (m) at the points of its curve.

    Raises:
        CurveUndefined: there is no band around a mean, and no consistency band of samples that weigh or come in groups.
        OutOfReach: there are too many samples to be drawn.
    """
    if view.is_mean:
        raise CurveUndefined("there is no band around the mean of several curves: ask for the micro average or a class")
    assert question.band is not None  # noqa: S101 - checked by the caller
    settings = BandSettings(question.band, _LEVEL if question.level is None else question.level)
    scores, bins, seed = view.scores, question.bins_made, chosen_seed(question.seed, source.counts)

    def answered(limits: Limits, method: str, draws: int = 0) -> CurvePoints:
        own = seed if draws else None
        band = CurveBand(form=settings.form, level=settings.level, method=method, draws=draws, seed=own)
        return replace(answer, low=limits[0], high=limits[1], band=band)

    grouping = _grouping(source, view)
    sampled = Sampled.of(grouped=grouping is not None, weighted=scores.weights is not None)
    ranking = scores.top_label if view.code is None else scores.ranking(view.code)
    if bins is not None:
        found = bins_band(ranking, bins, settings, grouping)
        method = "wilson" if settings.form is BandForm.POINTWISE else "clopper_pearson"
        return answered(found, sampled.named(method))
    made = plan(scores.n_samples, 2, DRAWS, whole=True)
    if made is None:
        raise OutOfReach("a band takes simulated samples, and there are too many samples for that")
    if question.name is CurveName.CALIBRATION:
        if sampled is not Sampled.ALONE:
            raise CurveUndefined("there is no consistency band for samples with weights or groups")
        found = consistency_band(ranking, draws=made.draws, seed=seed, at=curve.x, settings=settings)
        return answered(found, "consistency", made.draws)
    level = settings.level if grouping is None else expanded_level(settings.level, grouping.effective_groups)
    decides = question.name is CurveName.DECISION
    envelope = net_benefit_between(curve.x, question.prevalence) if decides else _HEIGHTS[question.name](curve.x)
    simulated = map(envelope, simulated_rates(ranking, draws=made.draws, seed=seed, grouping=grouping))
    return answered(band_around(simulated, replace(settings, level=level)), sampled.named("posterior"), made.draws)


def _grouping(source: MatrixInput, view: _View) -> Grouping | None:
    """Groups of the entries of a curve; those of one sample are not independent of each other."""
    groups = source.groups
    if view.entries > 1 and source.samples is not None:
        groups = np.repeat(np.arange(source.samples.size) if groups is None else groups, view.entries)
    return None if groups is None else Grouping.of(groups)


def _class(source: MatrixInput, name: CurveName, label: str | None) -> int | None:
    labels: Sequence[str] = source.labels
    if label is not None:
        return place_in(labels, label)
    if name is CurveName.CALIBRATION:
        return source.positive
    if name in OVERALL_CURVES:
        return None
    if source.positive is None:
        raise UnknownClass(f"the {name.value} curve belongs to one class: name one of {listed(labels)}")
    return source.positive
