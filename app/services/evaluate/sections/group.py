"""What a report says of samples that come in groups: their design, and intervals that count groups, not samples."""

from collections.abc import Iterator

import numpy as np

from app.domain.errors import InvalidInput
from app.domain.findings import Finding
from app.domain.options import FEWEST_DRAWS, IntervalChoice, Options
from app.domain.report import GroupDesign, Section, Value
from app.domain.wording import rounded
from app.kernel.metrics.families.accuracy import accuracy
from app.kernel.numerics.arrays import Array, kish_effective_n
from app.kernel.uncertainty.groups import FEW_GROUPS
from app.services.estimates.report_intervals import balanced_for_report, estimate_for_report, matrix_metrics
from app.services.estimates.run_data import RunData
from app.services.estimates.warnings import everything_findings
from app.services.evaluate.questions import Question
from app.services.json_values import numbers


def group_section(question: Question, run: RunData) -> Section:
    """The part of the report on the matrix that needs the groups.

    Raises:
        InvalidInput: there are too many groups for intervals of everything.
    """
    if run.grouping is None:
        raise ValueError("expected samples in groups")
    options, sizes = question.options, run.grouping.sizes()
    design = _design(sizes)
    if not run.has_sampling_error:
        return Section(details={**design})
    known = run.group_forms(options.level).design_effects
    effects = dict(zip(known, numbers(np.array(list(known.values()))), strict=True))
    design["design_effects"] = effects
    findings = [_in_groups(sizes, effects[accuracy.key])]
    if not question.has_intervals:
        return Section(details={**design}, findings=tuple(findings))
    found = estimate_for_report(matrix_metrics(options), question.of_matrix, run, _within_reach(run, options))
    findings += _few(sizes)
    if options.intervals is IntervalChoice.ALL:
        findings += everything_findings(found, run, options)
    return Section(
        details={**design},
        intervals=found.intervals(),
        balanced_intervals=balanced_for_report(run, options),
        findings=tuple(findings),
    )


def _within_reach(run: RunData, options: Options) -> Options:
    """The options, unless groups are too many to be drawn as often as is of use."""
    everything = options.intervals is IntervalChoice.ALL
    if everything and run.groups is not None and run.groups.affordable_draws(options.sampling.draws) < FEWEST_DRAWS:
        raise InvalidInput.at(
            "/options/intervals",
            "too_many_groups",
            f"expected the headline intervals for {run.groups.n_groups} groups: drawing them {FEWEST_DRAWS} times "
            "takes too long",
        )
    return options


def _design(sizes: Array) -> GroupDesign:
    return {
        "n_groups": sizes.size,
        "smallest": int(sizes.min()),
        "largest": int(sizes.max()),
        "effective_groups": kish_effective_n(sizes),
    }


def _in_groups(sizes: Array, effect: Value) -> Finding:
    total = int(sizes.sum())
    if effect is None:
        worth = "How much less is not known: all predictions are right, or all are wrong."
    elif effect > 1.0:
        worth = (
            f"For accuracy they carry as much information as about {rounded(total / effect, 0)} independent samples."
        )
    else:
        worth = "Here they carry no less: predictions in a group are not more alike than others."
    return Finding.note(
        "samples_in_groups",
        f"The {total:,} samples come in {sizes.size:,} groups, and carry less information than independent samples. "
        f"{worth} Intervals allow for the groups; accuracy_p_value and kappa_standard_error do not.",
        n_samples=total,
        n_groups=sizes.size,
        design_effect=effect,
    )


def _few(sizes: Array) -> Iterator[Finding]:
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
