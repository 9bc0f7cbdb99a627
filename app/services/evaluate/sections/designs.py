"""Sections on designs of samples: weights with their effective size, groups, and the intervals that know either."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from app.domain.errors import InvalidInput
from app.domain.findings import Finding
from app.domain.inputs.samples import WeightSums
from app.domain.members import numbers
from app.domain.options import FEWEST_DRAWS, IntervalChoice, Options
from app.domain.report import GroupDesign, Section, Value, WeightDesign
from app.domain.wording import numbered, rounded, significant
from app.kernel.metrics.card import AnyMetric
from app.kernel.metrics.expression import Measure
from app.kernel.metrics.families.averages import accuracy
from app.kernel.numerics.arrays import Array, kish_effective_n
from app.kernel.streamed.labels import StreamedLabelInfluences
from app.kernel.uncertainty.designs import NoLimits, design_effects
from app.kernel.uncertainty.groups import FEW_GROUPS
from app.kernel.uncertainty.influence import LabelInfluences, UnitInfluences
from app.services.estimates.run_data import RunData
from app.services.evaluate.questions import Question
from app.services.evaluate.sections.matrix import with_slow_intervals

# With so few samples of one weight to their name the linearised variance is itself uncertain: always below the first,
# below the second where few of many samples carry it. Lognormal weights (sigma 1.5, 200 samples) are worth 10 to 70:
# limits of 95 % hold the truth in 90; worth 60 to 100 (sigma 1) they do in 93, of evener weights in 95.
FEW_EFFECTIVE, FEW_OF_MANY = 30, 75
_ALLOWED = "Intervals allow for the groups"


def weight_section(question: Question, run: RunData) -> Section:
    """The part of the report on the matrix that needs the weights."""
    weighted, samples = run.weighted, run.source.samples
    if weighted is None or samples is None or samples.weights is None:
        raise ValueError("expected weighted samples")
    effects = design_effects(run.design)
    sums = None if samples.tally is None else samples.tally.weights
    design = _weight_design(samples.weights, weighted.effective_samples, effects, sums)
    return _section(question, run, design, _findings(question, design))


def _section(question: Question, run: RunData, design: WeightDesign | GroupDesign, findings: list[Finding]) -> Section:
    """A section with a design, and with intervals where they are wanted."""
    section = Section(details={**design}, findings=tuple(findings))
    return with_slow_intervals(section, question, run) if question.has_intervals else section


def unit_weights(question: Question, run: RunData, metrics: Sequence[AnyMetric]) -> tuple[WeightDesign, list[Finding]]:
    """Return the design of weighted samples with labels or clusters, with the design effects of these overall metrics,
    and its findings.
    """
    influences, effects = run.influences, {}
    if not isinstance(influences, UnitInfluences):
        raise ValueError("expected weighted samples with labels or clusters")
    for metric in metrics:
        linear = influences.of(metric)
        if linear is None and isinstance(influences, LabelInfluences):
            linear = influences.of_tables(Measure(metric, metric.card.defaults, None))
        if linear is not None:
            effects[metric.key] = influences.design_effect(linear)
    if isinstance(influences, StreamedLabelInfluences):
        moments = influences.moments
        design = _designed(moments.whole.used, *moments.ends, moments.whole.effective, effects)
    elif run.weights is None:
        raise ValueError("expected weighted samples")
    else:
        design = _weight_design(run.weights, kish_effective_n(run.weights), effects)
    return design, _findings(question, design)


def _findings(question: Question, design: WeightDesign) -> list[Finding]:
    effective = design["effective_samples"]
    few = question.has_intervals and effective < max(FEW_EFFECTIVE, min(FEW_OF_MANY, design["n_samples"] / 2))
    return [_worth(design), _few_effective(design)] if few else [_worth(design)]


def _weight_design(
    weights: Array, effective: float, known: Mapping[str, float], sums: WeightSums | None = None
) -> WeightDesign:
    """The design of weights of samples, or of entries of which ``sums`` tell."""
    if sums is not None:
        ends = float(np.nanmin(sums.lightest)), float(np.nanmax(sums.heaviest))
        return _designed(int(sums.used.sum()), *ends, effective, known)
    used = weights[weights > 0]
    return _designed(used.size, float(used.min()), float(used.max()), effective, known)


def _designed(size: int, smallest: float, largest: float, effective: float, known: Mapping[str, float]) -> WeightDesign:
    return {
        "n_samples": size,
        "smallest": smallest,
        "largest": largest,
        "effective_samples": effective,
        "design_effects": dict(zip(known, numbers(np.array(list(known.values()))), strict=True)),
    }


def _worth(design: WeightDesign) -> Finding:
    total, effective = design["n_samples"], design["effective_samples"]
    lightest, heaviest = significant(design["smallest"]), significant(design["largest"])
    ends = f"the weight {heaviest}" if lightest == heaviest else f"weights from {lightest} to {heaviest}"
    return Finding.note(
        "samples_with_weights",
        f"The {total:,} samples have {ends} and carry as much information as about {rounded(effective, 0)} of equal "
        "weight. A weight is taken as the inverse of the chance to be sampled, not as how often a sample was seen. "
        "Intervals allow for that.",
        n_samples=total,
        effective_samples=effective,
    )


def _few_effective(design: WeightDesign) -> Finding:
    effective = design["effective_samples"]
    return Finding.warning(
        "intervals_of_few_effective_samples",
        f"The samples carry only as much information as {rounded(effective, 0)} of equal weight. From so few the "
        "variance is uncertain. Intervals are widened, but can miss the truth more often than their level says.",
        effective_samples=effective,
    )


def group_section(question: Question, run: RunData) -> Section:
    """The part of the report on the matrix that needs the groups.

    Raises:
        InvalidInput: there are too many groups for intervals of everything.
    """
    if run.grouping is None:
        raise ValueError("expected samples in groups")
    sizes = run.grouping.sizes()
    design = _group_design(sizes)
    if run.uncounted is NoLimits.NO_COUNTS:
        return Section(details={**design})
    known = design_effects(run.design)
    effects = dict(zip(known, numbers(np.array(list(known.values()))), strict=True))
    design["design_effects"] = effects
    said = f"{_worth_in_groups(int(sizes.sum()), effects[accuracy.key])} {_ALLOWED}; accuracy_p_value and "
    said += "kappa_standard_error do not."
    findings = [_in_groups(sizes, said, design_effect=effects[accuracy.key])]
    if question.has_intervals:
        _check_reach(run, question.options)
        findings += _few_groups(sizes)
    return _section(question, run, design, findings)


def unit_groups(question: Question, run: RunData, units: str) -> tuple[GroupDesign, list[Finding]]:
    """Return the groups of labels, clusters or items, which are called so, with its findings."""
    if run.grouping is None:
        raise ValueError("expected samples in groups")
    sizes = run.grouping.sizes()
    found = [_in_groups(sizes, f"{_ALLOWED}.", units)]
    return _group_design(sizes), [*found, *(_few_groups(sizes) if question.has_intervals else ())]


def _check_reach(run: RunData, options: Options) -> None:
    """Refuse groups that are too many to be drawn as often as is of use."""
    everything = options.intervals is IntervalChoice.ALL
    if everything and run.groups is not None and run.groups.affordable_draws(options.sampling.draws) < FEWEST_DRAWS:
        raise InvalidInput.at(
            "/options/intervals",
            "too_many_groups",
            f"expected the headline intervals for {run.groups.n_groups} groups: drawing them {FEWEST_DRAWS} times "
            "takes too long",
        )


def _group_design(sizes: Array) -> GroupDesign:
    return {
        "n_groups": sizes.size,
        "smallest": int(sizes.min()),
        "largest": int(sizes.max()),
        "effective_groups": kish_effective_n(sizes),
    }


def _worth_in_groups(total: int, effect: Value) -> str:
    if effect is None:
        return "How much less is not known: all predictions are right, or all are wrong."
    if effect > 1.0:
        worth = numbered(round(total / effect), "independent samples")
        return f"For accuracy they carry as much information as about {worth}."
    return "Here they carry no less: predictions in a group are not more alike than others."


def _in_groups(sizes: Array, said: str, units: str = "samples", **known: Value) -> Finding:
    total = int(sizes.sum())
    return Finding.note(
        "samples_in_groups",
        f"The {total:,} {units} come in {sizes.size:,} groups, and can carry less information than independent "
        f"{units}. {said}",
        n_samples=total,
        n_groups=sizes.size,
        **known,
    )


def _few_groups(sizes: Array) -> Iterator[Finding]:
    effective = kish_effective_n(sizes)
    if effective >= FEW_GROUPS:
        return
    unequal = sizes.size >= FEW_GROUPS
    yield Finding.warning(
        "intervals_of_few_groups",
        (
            f"The groups differ so much in size that they count as {rounded(effective, 0)} equal ones"
            if unequal
            else f"There are only {sizes.size} groups"
        )
        + f". With fewer than {FEW_GROUPS} the variance between groups is uncertain. Intervals are widened, but can "
        "miss the truth more often than their level says.",
        n_groups=sizes.size,
        effective_groups=effective,
    )
