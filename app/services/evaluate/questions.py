"""An input and the question about it, understood, and refused where it makes no sense."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import numpy as np

from app.domain.errors import InvalidExpression, InvalidInput, all_understood
from app.domain.expressions.expressions import parse, render
from app.domain.inputs.confusion import costs_of
from app.domain.inputs.content import DATA_FACT, DECISIONS_FACT, GROUPS_FACT, Content
from app.domain.inputs.kinds import inputs_of
from app.domain.inputs.labels import listed
from app.domain.inputs.matrices import MatrixInput
from app.domain.members import numbers
from app.domain.named_metrics import HEADLINE
from app.domain.options import FEWEST_DRAWS, Costs, IntervalChoice, IntervalMethod, Options, Sampling
from app.kernel.metrics.card import COSTS, Choice, MatrixOf, Task
from app.kernel.metrics.expression import Expression, is_of_slices, measures, of_probabilities
from app.kernel.metrics.families.decisions import (
    cheapest_decisions,
    cost_savings,
    expected_cost,
    minimum_cost,
    normalized_cost,
)
from app.kernel.numerics.arrays import lazy, silently
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.designs import catalogue_rates
from app.kernel.uncertainty.draws import Alternative, AreaInterval, Prior
from app.kernel.uncertainty.intervals import ProportionInterval
from app.services.estimates.methods.simulation import MOST_CELLS

_OF_CLASSES = (expected_cost, normalized_cost, cost_savings)


def checked(costs: Costs, source: MatrixInput) -> Costs:
    """Costs whose rows are the classes, and whose columns are what the input has decisions about: the classes, or what
    it names.

    Raises:
        InvalidInput: they do not fit the input; the pointer says where.
    """
    labels, rows = source.labels, costs.matrix
    if len(rows) != len(labels):
        raise _refused("matrix", f"expected {len(labels)} rows of costs, one for each actual class, got {len(rows)}")
    columns = source.facts.get(DECISIONS_FACT, labels)
    names = columns if costs.decisions is None else costs.decisions
    for index, row in enumerate(rows):
        if len(row) != len(names):
            what = "a cost for each class, or decisions that name the columns" if costs.decisions is None else "costs"
            raise _refused(f"matrix/{index}", f"expected {len(names)} numbers, {what}, got {len(row)}")
    if len(set(names)) < len(names):
        raise _refused("decisions", "expected decisions that all differ")
    if set(names) == set(columns):
        order = [names.index(one) for one in columns]
        return Costs(tuple(tuple(row[place] for place in order) for row in rows), tuple(columns))
    if source.decisions is not None:
        raise _refused("decisions", f"expected those of the matrix, {listed(columns)}, got {listed(names)}")
    if not _has_probabilities(source):
        raise _refused(
            "decisions",
            "expected the classes: what is decided otherwise follows from probabilities, and this input has none",
        )
    return costs


def _refused(where: str, words: str) -> InvalidInput:
    return InvalidInput.at(f"/options/costs/{where}", "invalid_costs", words)


def _has_probabilities(source: MatrixInput) -> bool:
    return source.is_scored and not source.has_scores


def refuse_no_classes(expression: Expression, costs: Costs, source: MatrixInput) -> None:
    """Refuse a metric that takes these costs and needs that decisions are classes where they are not; raises
    InvalidExpression.
    """
    if _are_of_classes(costs, source):
        return
    for leaf in measures(expression):
        card = leaf.metric.card
        parameter = next((one for one in card.parameters if one.name == COSTS.name), None)
        takes_classes = isinstance(parameter, Choice) and parameter.matrix is MatrixOf.COSTS
        if takes_classes and leaf.parameters[COSTS.name] is costs.matrix:
            raise InvalidExpression(f"{card.key} needs decisions that are the classes; {minimum_cost.key} takes others")


def _are_of_classes(costs: Costs, source: MatrixInput) -> bool:
    """Or of what the input has in place of classes."""
    return costs.decisions == tuple(source.facts.get(DECISIONS_FACT, source.labels))


def decided(costs: Costs, scores: Scores, labels: Sequence[str]) -> dict[str, Any]:
    """Return the result of deciding by the lowest expected cost: a matrix of actual classes and decisions, and its
    rates.
    """
    matrix, names = np.array(costs.matrix), costs.decisions or tuple(labels)
    counts = np.zeros((len(labels), len(names)))
    for part in scores.parts:
        np.add.at(counts, (part.y, cheapest_decisions(part, matrix)), 1.0 if part.weights is None else part.weights)
    with silently():
        of_class, of_decision = counts / counts.sum(axis=1)[:, None], counts / counts.sum(axis=0)
    return {
        "decisions": list(names),
        "matrix": counts.tolist(),
        **costs_of(counts, matrix, names),
        "share_of_class": {
            label: dict(zip(names, numbers(row), strict=True)) for label, row in zip(labels, of_class, strict=True)
        },
        "share_of_decision": {
            name: dict(zip(labels, numbers(column), strict=True))
            for name, column in zip(names, of_decision.T, strict=True)
        },
    }


@cache
def _quick_names() -> frozenset[str]:
    return frozenset((*HEADLINE, *catalogue_rates().keys))


# How matrices of weighted samples can be simulated, or have limits by derivatives.
_OF_WEIGHTED = (IntervalMethod.POSTERIOR, IntervalMethod.DELTA)


@dataclass(frozen=True, eq=False)
class Question:
    """An input and what is asked of it, understood."""

    source: MatrixInput
    options: Options
    expressions: tuple[Expression, ...]

    @property
    def of_matrix(self) -> list[tuple[str, Expression]]:
        """The expressions that need no probabilities, by their text."""
        return [(text, one) for text, one in self._asked if not (of_probabilities(one) or is_of_slices(one))]

    @property
    def of_probabilities(self) -> list[tuple[str, Expression]]:
        """The expressions that need probabilities or scores."""
        return [(text, one) for text, one in self._asked if of_probabilities(one) and not is_of_slices(one)]

    @property
    def of_slices(self) -> list[tuple[str, Expression]]:
        """The expressions of slices, which need the attributes of samples."""
        return [(text, one) for text, one in self._asked if is_of_slices(one)]

    @property
    def _asked(self) -> list[tuple[str, Expression]]:
        return list(zip(self.options.metrics, self.expressions, strict=True))

    @lazy
    def has_intervals(self) -> bool:
        """Are there to be any? They need numbers of samples, or the weight of each."""
        known = self.source.content is Content.counts or self.source.is_weighted
        return known and self.options.intervals is not IntervalChoice.NONE

    @lazy
    def quick_level(self) -> float | None:
        """Coverage of the quick intervals of the matrix, None when there are none: groups and weighted samples have
        intervals of their own, and where everything or another method is asked for these are made with the rest.
        """
        usual = (
            self.options.intervals is IntervalChoice.HEADLINE
            and self.options.proportion_interval is ProportionInterval.WILSON
            and self.options.alternative is Alternative.TWO_SIDED
        )
        quick = self.has_intervals and usual and not self.by_units
        return self.options.level if quick else None

    @property
    def has_slow_intervals(self) -> bool:
        """Are there intervals of a matrix of independent samples that are not the quick ones?"""
        more = self.quick_level is None or bool(self.limits_beyond)
        return self.has_intervals and not self.by_units and more

    @property
    def limits_beyond(self) -> list[tuple[str, Expression]]:
        """The expressions of a matrix whose limits the quick intervals have not, at least not under this name."""
        if self.quick_level is None:
            return self.of_matrix
        labels = self.source.labels
        return [
            (text, expression)
            for text, expression in self.of_matrix
            if text.partition("@")[0] not in _quick_names() or text != render(expression, labels)
        ]

    @lazy
    def by_units(self) -> bool:
        """Do its intervals need every group, or the weight of every sample?"""
        return self.source.is_grouped or self.source.is_weighted

    @lazy
    def family(self) -> tuple[int, float | None]:
        """Number of classes and level, which questions must share to be answered in one pass."""
        return len(self.source.labels), self.quick_level


def ask(source: MatrixInput, options: Options, *, sliceable: bool = True) -> Question:
    """Understand what is asked; ``sliceable``: also of slices, which samples that were streamed do not fall into.

    Raises:
        InvalidExpression: one of ``options.metrics`` is none; its pointer names which.
        InvalidExpressions: several are.
        InvalidInput: intervals of everything cannot be given for this input, or there is one group only.
    """
    if source.is_grouped:
        _check_groups(source, options)
    if source.task is not None:
        _check_unit_options(source, source.task, options)
    elif options.intervals is IntervalChoice.ALL:
        _check_sampling(source, options.sampling)
    for option, usual, check in _OF_INTERVALS:
        if getattr(options, option) is usual:
            continue
        if options.intervals is IntervalChoice.NONE:
            detail = "expected intervals to be asked for, got the intervals none"
            raise InvalidInput.at(f"/options/{option}", "no_intervals", detail)
        check(source, options)
    if options.costs is not None:
        costs = checked(options.costs, source)
        more = [*(_OF_CLASSES if _are_of_classes(costs, source) else ())]
        more += [minimum_cost] if _has_probabilities(source) else []
        keys = dict.fromkeys((*options.metrics, *(metric.key for metric in more)))
        options = replace(options, costs=costs, metrics=tuple(keys))
    return Question(source, options, _parsed(options, source, sliceable=sliceable) if options.metrics else ())


def _parsed(options: Options, source: MatrixInput, *, sliceable: bool) -> tuple[Expression, ...]:
    inputs = inputs_of(source)
    # For metrics of costs that name none.
    assumed = {} if options.costs is None else {COSTS.name: options.costs.matrix}

    def understood(text: str) -> Expression:
        expression = parse(
            text,
            source.labels,
            source.positive,
            inputs=inputs,
            task=source.task,
            assumed=assumed,
            decisions=source.decisions,
            sliceable=sliceable,
        )
        if options.costs is not None:
            refuse_no_classes(expression, options.costs, source)
        return expression

    return tuple(
        all_understood(options.metrics, understood, lambda text: f"/options/metrics/{options.metrics.index(text)}")
    )


def _check_unit_options(source: MatrixInput, task: Task, options: Options) -> None:
    """Refuse options that only a matrix of classes has, and intervals of weights."""
    everything, method = options.intervals is IntervalChoice.ALL, options.sampling.method
    if options.costs is not None and task is not Task.DECISIONS:
        detail = f"expected no costs: they have no meaning for {task}"
        raise InvalidInput.at("/options/costs", "not_for_this_kind", detail)
    if everything and source.content is not Content.counts and not source.is_weighted:
        raise _needs_counts("intervals", f": an interval needs to know how many, and these are {source.content}")
    if everything and method in (IntervalMethod.DELTA, IntervalMethod.BCA):
        detail = f"expected bootstrap: limits of {task} are made by resampling, and {method} is for a matrix of classes"
        raise InvalidInput.at("/options/interval_method", "not_for_this_kind", detail)


def _needs_counts(option: str, why: str) -> InvalidInput:
    return InvalidInput.at(f"/options/{option}", "intervals_need_counts", f"expected numbers of samples{why}")


def _check_groups(source: MatrixInput, options: Options) -> None:
    if source.facts[GROUPS_FACT] < 2:
        where = "folds" if source.kind == "folds" else "data" if DATA_FACT in source.facts else "group_ids"
        raise InvalidInput.at(
            f"/input/{where}",
            "one_group",
            "expected at least two groups, got one for all samples: how groups differ is not known then, and no "
            "interval can be given; leave group_ids out if samples are independent",
        )
    method, everything = options.sampling.method, options.intervals is IntervalChoice.ALL
    if source.task is None and everything and method not in (None, IntervalMethod.BOOTSTRAP):
        raise InvalidInput.at(
            "/options/interval_method",
            "not_for_groups",
            "expected bootstrap, which draws whole groups, as the "
            f"samples come in groups; {method} takes them as independent",
        )


def _check_proportions(source: MatrixInput, options: Options) -> None:
    """Limits of proportions by another method are of numbers of independent samples."""
    method = options.proportion_interval
    if source.is_grouped:
        raise InvalidInput.at(
            "/options/proportion_interval",
            "not_for_groups",
            "expected wilson, which is made for groups here too, as the samples come in groups; "
            f"{method} takes them as independent",
        )
    if source.content is not Content.counts and not source.is_weighted:
        raise _needs_counts("proportion_interval", f", which {method} counts, and the matrix holds {source.content}")


def _check_areas(source: MatrixInput, options: Options) -> None:
    """Limits by class sizes need independent samples of equal weight."""
    where = "/options/area_interval"
    if not source.is_scored:
        detail = f"expected probabilities or scores, which areas are of, got {source.kind}"
        raise InvalidInput.at(where, "needs_scores", detail)
    if source.is_grouped or source.is_weighted:
        meant = "come in groups" if source.is_grouped else "have weights"
        raise InvalidInput.at(
            where,
            "not_for_groups" if source.is_grouped else "not_for_weights",
            f"expected delong, which allows for it that the samples {meant}; {options.area_interval} knows no more "
            "than how many samples each class has",
        )


# Options about intervals, what they usually are, and what refuses another choice of an input.
_OF_INTERVALS: Final[Sequence[tuple[str, Any, Callable[[MatrixInput, Options], None]]]] = (
    ("proportion_interval", ProportionInterval.WILSON, _check_proportions),
    ("area_interval", AreaInterval.DELONG, _check_areas),
    ("alternative", Alternative.TWO_SIDED, lambda *_: None),
)


def _check_sampling(source: MatrixInput, sampling: Sampling) -> None:
    size = len(source.labels)
    if source.is_weighted and not source.is_grouped and sampling.of_matrices not in _OF_WEIGHTED:
        raise InvalidInput.at(
            "/options/interval_method",
            "not_for_weights",
            f"expected {' or '.join(_OF_WEIGHTED)}, which know the weight of every sample, as the samples have "
            f"weights; {sampling.method} assumes samples of equal weight",
        )
    if source.content is not Content.counts and not source.is_weighted:
        why = f"an interval needs to know how many stand behind every entry, and the matrix holds {source.content}"
        raise _needs_counts("intervals", f": {why}")
    if sampling.method is not IntervalMethod.DELTA and sampling.draws * size * size > MOST_CELLS:
        most = MOST_CELLS // (size * size)
        advice = f"at most {most} draws" if most >= FEWEST_DRAWS else "the headline intervals or the delta method"
        raise InvalidInput.at(
            "/options/draws", "too_many_draws", f"expected {advice} for {size} classes, got {sampling.draws} draws"
        )
    rows = sampling.pseudo_counts
    if (sampling.prior is Prior.CUSTOM) != (rows is not None):
        raise InvalidInput.at(
            "/options/pseudo_counts",
            "custom_prior",
            "expected pseudo_counts with the prior custom, and only with it",
        )
    if rows is not None and (len(rows) != size or any(len(row) != size for row in rows)):
        raise InvalidInput.at("/options/pseudo_counts", "wrong_shape", f"expected {size} rows of {size} pseudo-counts")
