"""What is answered about samples that come in groups: their design, and intervals that count groups, not samples."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from app.domain.errors import InvalidInput
from app.domain.findings import Finding
from app.domain.inputs.content import GROUPS_FACT, Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.report import GroupDesign, GroupPart, Interval, IntervalChoice, IntervalMethod, Options, Report, Value
from app.domain.wording import rounded
from app.kernel.metrics.expression import Expression
from app.kernel.metrics.families.accuracy import accuracy
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.clusters import FEW_GROUPS, GroupedRuns, Grouping
from app.kernel.uncertainty.group_headline import group_headline
from app.kernel.uncertainty.intervals import kish_effective_n
from app.services.estimates.full_intervals import full_intervals
from app.services.estimates.headline_intervals import group_headline_intervals
from app.services.reasons import plain


def check_groups(source: MatrixInput, options: Options) -> None:
    """Refuse what groups make impossible.

    Raises:
        InvalidInput: there is one group only, or intervals of independent samples are asked for.
    """
    if not source.is_grouped:
        return
    if source.facts[GROUPS_FACT] < 2:
        where = "/input/folds" if source.kind == "folds" else "/input/group_ids"
        raise InvalidInput.at(
            where,
            "one_group",
            "expected at least two groups, got one for all samples: how groups differ is "
            "not known then, and no interval can be given; leave group_ids out if samples are independent",
        )
    if options.intervals is IntervalChoice.ALL and options.sampling.method is not IntervalMethod.BOOTSTRAP:
        raise InvalidInput.at(
            "/options/interval_method",
            "not_for_groups",
            "expected bootstrap, which draws whole groups, as the "
            f"samples come in groups; {options.sampling.method} takes them as independent",
        )


def grouping_of(source: MatrixInput) -> Grouping | None:
    """Which samples of an input belong together; None when they are independent.

    Raises:
        ValueError: the input came in groups and is without its samples.
    """
    if not source.is_grouped:
        return None
    if source.samples is None or source.samples.groups is None:
        raise ValueError("expected the samples with their groups")
    return Grouping.of(source.samples.groups)


def judge_groups(source: MatrixInput, options: Options, asked: Sequence[tuple[str, Expression]]) -> GroupPart:
    """The part of the report on the matrix that needs the groups.

    Args:
        source: With samples.
        options: What is asked.
        asked: Metric expressions of the matrix, by their text.
    """
    grouping, samples = grouping_of(source), source.samples
    if grouping is None or samples is None:
        raise ValueError("expected samples in groups")
    sizes = grouping.sizes()
    design = _design(sizes)
    if source.content is not Content.counts:
        return GroupPart(design=design, intervals={}, findings=())
    runs = GroupedRuns.gather(grouping.codes, samples.truth, samples.predicted, len(source.labels))
    found = group_headline(runs, options.level)
    effects = dict(zip(found.design_effects, plain(np.array(list(found.design_effects.values()))), strict=True))
    design["design_effects"] = effects
    findings = [*_findings(sizes, effects[accuracy.key])]
    intervals: Mapping[str, Interval] = {}
    if options.intervals is not IntervalChoice.NONE:
        intervals = group_headline_intervals(found, source.labels)
        findings += _few(sizes)
    if options.intervals is IntervalChoice.ALL:
        full = full_intervals(source, options, asked, intervals, runs)
        intervals = full.intervals
        findings += full.findings
    return GroupPart(design=design, intervals=intervals, findings=tuple(findings))


def with_groups(report: Report, part: GroupPart) -> Report:
    """The report with what the groups add to it."""
    return replace(report, intervals=part.intervals, findings=(*report.findings, *part.findings))


def _design(sizes: Array) -> GroupDesign:
    return {
        "n_groups": sizes.size,
        "smallest": int(sizes.min()),
        "largest": int(sizes.max()),
        "effective_groups": kish_effective_n(sizes),
    }


def _findings(sizes: Array, effect: Value) -> list[Finding]:
    total = int(sizes.sum())
    if effect is None:
        worth = "how much less cannot be seen, since all predictions are right or all wrong"
    elif effect > 1.0:
        worth = f"for accuracy as much as about {rounded(total / effect, 0)} independent ones"
    else:
        worth = "here no less, since predictions in a group are not more alike than others"
    return [
        Finding.note(
            "samples_in_groups",
            f"The {total} samples come in {sizes.size} groups and tell less than as many independent ones: {worth}. "
            "Intervals count groups; p-values and standard errors among the metrics, such as accuracy_p_value and "
            "kappa_standard_error, do not.",
            n_samples=total,
            n_groups=sizes.size,
            design_effect=effect,
        )
    ]


def _few(sizes: Array) -> list[Finding]:
    effective = kish_effective_n(sizes)
    if effective >= FEW_GROUPS:
        return []
    unequal = sizes.size >= FEW_GROUPS
    return [
        Finding.warning(
            "intervals_of_few_groups",
            (
                f"The groups differ so much in size that they count as {rounded(effective, 0)} equal ones"
                if unequal
                else f"There are only {sizes.size} groups"
            )
            + f": with fewer than {FEW_GROUPS} the variance between groups is itself uncertain, and intervals, though "
            "widened for it, can hold the truth less often than their level says.",
            n_groups=sizes.size,
            effective_groups=effective,
        )
    ]
