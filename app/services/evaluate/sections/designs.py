"""Sections on designs of samples: weights with their effective size, groups, and the intervals that know either."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from app.domain.errors import InvalidInput
from app.domain.findings import Finding
from app.domain.inputs.content import WEIGHTS_FACT
from app.domain.members import numbers
from app.domain.options import FEWEST_DRAWS, IntervalChoice, Options
from app.domain.report import GroupDesign, Section, Value, WeightDesign
from app.domain.wording import numbered, rounded, significant, whole
from app.kernel.metrics.card import AnyMetric
from app.kernel.metrics.expression import Measure
from app.kernel.metrics.families.averages import accuracy
from app.kernel.numerics.arrays import Array, kish_effective_n
from app.kernel.streamed.labels import StreamedLabels
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


def design_section(question: Question, run: RunData) -> Section:
    """The part of the report on a matrix that needs the groups or the weights, with the intervals that know these.

    Raises:
        InvalidInput: there are too many groups for intervals of everything.
    """
    design: GroupDesign | WeightDesign
    if question.source.is_grouped:
        if question.has_intervals:
            _check_reach(run, question.options)
        design, findings = groups_of(question, run, "samples")
    else:
        design, findings = weights_of(question, run, design_effects(run.design))
    section = Section(details={**design}, findings=tuple(findings))
    return with_slow_intervals(section, question, run) if question.has_intervals else section


def effects_on_units(run: RunData, metrics: Sequence[AnyMetric]) -> dict[str, float]:
    """Return the design effects of the weights of samples with labels or clusters on overall metrics."""
    influences, effects = run.influences, {}
    if not isinstance(influences, UnitInfluences):
        raise ValueError("expected weighted samples with labels or clusters")
    for metric in metrics:
        linear = influences.of(metric)
        if linear is None and isinstance(influences, LabelInfluences):
            linear = influences.of_tables(Measure(metric, metric.card.defaults, None))
        if linear is not None:
            effects[metric.key] = influences.design_effect(linear)
    return effects


def weights_of(question: Question, run: RunData, effects: Mapping[str, float]) -> tuple[WeightDesign, list[Finding]]:
    """Return the design of weighted samples with its effects by metric, and its findings."""
    size, smallest, largest = _used(run)
    effective = question.source.facts[WEIGHTS_FACT]
    design: WeightDesign = {
        "n_samples": size,
        "smallest": smallest,
        "largest": largest,
        "effective_samples": effective,
        "design_effects": dict(zip(effects, numbers(np.array(list(effects.values()))), strict=True)),
    }
    found = [_worth(design)]
    if question.has_intervals and effective < max(FEW_EFFECTIVE, min(FEW_OF_MANY, size / 2)):
        few = Finding.warning(
            "intervals_of_few_effective_samples",
            f"The samples carry only as much information as {rounded(effective, 0)} of equal weight. From so few the "
            "variance is uncertain. Intervals are widened, but can miss the truth more often than their level says.",
            effective_samples=effective,
        )
        found.append(few)
    return design, found


def _used(run: RunData) -> tuple[int, float, float]:
    """Number of samples with a weight above 0, and the smallest and largest of these weights."""
    if run.source.task is not None and isinstance(run.units, StreamedLabels):
        moments = run.units.sums.moments
        return moments.whole.used, *moments.ends
    sums = run.source.known_samples.weight_sums
    if sums is None:
        raise ValueError("expected weighted samples")
    return int(sums.used.sum()), float(np.nanmin(sums.lightest)), float(np.nanmax(sums.heaviest))


def _worth(design: WeightDesign) -> Finding:
    total, effective = design["n_samples"], design["effective_samples"]
    lightest, heaviest = significant(design["smallest"]), significant(design["largest"])
    ends = f"the weight {heaviest}" if lightest == heaviest else f"weights from {lightest} to {heaviest}"
    return Finding.note(
        "samples_with_weights",
        f"The {total:,} samples have {ends} and carry as much information as about {whole(round(effective))} of equal "
        "weight. A weight is taken as the inverse of the chance to be sampled, not as how often a sample was seen. "
        "Intervals allow for that.",
        n_samples=total,
        effective_samples=effective,
    )


def groups_of(question: Question, run: RunData, units: str) -> tuple[GroupDesign, list[Finding]]:
    """Return the groups of samples, labels, clusters or items, which are called so, with its findings."""
    if run.grouping is None:
        raise ValueError("expected samples in groups")
    sizes = run.grouping.sizes()
    design: GroupDesign = {
        "n_groups": sizes.size,
        "smallest": int(sizes.min()),
        "largest": int(sizes.max()),
        "effective_groups": kish_effective_n(sizes),
    }
    said, of_accuracy = f"{_ALLOWED}.", {}
    if question.source.task is None:
        if run.uncounted is NoLimits.NO_COUNTS:
            return design, []
        known = design_effects(run.design)
        effects = dict(zip(known, numbers(np.array(list(known.values()))), strict=True))
        design["design_effects"], of_accuracy = effects, {"design_effect": effects[accuracy.key]}
        said = f"{_worth_in_groups(int(sizes.sum()), effects[accuracy.key])} {_ALLOWED}; accuracy_p_value and "
        said += "kappa_standard_error do not."
    total = int(sizes.sum())
    in_groups = Finding.note(
        "samples_in_groups",
        f"The {total:,} {units} come in {sizes.size:,} groups, and can carry less information than independent "
        f"{units}. {said}",
        n_samples=total,
        n_groups=sizes.size,
        **of_accuracy,
    )
    return design, [in_groups, *(_few_groups(sizes) if question.has_intervals else ())]


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


def _worth_in_groups(total: int, effect: Value) -> str:
    if effect is None:
        return "How much less is not known: all predictions are right, or all are wrong."
    if effect > 1.0:
        worth = numbered(round(total / effect), "independent samples")
        return f"For accuracy they carry as much information as about {worth}."
    return "Here they carry no less: predictions in a group are not more alike than others."


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
