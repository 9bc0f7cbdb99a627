"""What a kind of input has to say to be evaluated, estimated, compared, gated and ranked as all others are."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from app.domain.findings import Finding
from app.domain.inputs.matrices import MatrixInput
from app.domain.options import Options
from app.domain.report import GroupedMetrics
from app.kernel.metrics.card import AnyMetric, Card, Inputs
from app.kernel.metrics.expression import Subject
from app.kernel.uncertainty.units import Units


@dataclass(frozen=True, slots=True)
class Reported:
    """What a report says of an input: a metric with its parameters, and the name that it has there."""

    name: str
    metric: AnyMetric
    parameters: Mapping[str, Any]

    @property
    def card(self) -> Card:
        """That of the metric."""
        return self.metric.card

    @classmethod
    def plain(cls, metric: AnyMetric) -> Self:
        """A metric with its default parameters, by its key."""
        return cls(metric.key, metric, metric.card.defaults)


PerClass = Mapping[str, GroupedMetrics]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitKind:
    """One kind of input.

    Attributes:
        inputs: What metrics can be computed from, for an input: fewer where scores are missing.
        ranked: What runs are ranked by when nobody says: the first of these that can be computed.
        units: What is resampled: with the samples where the kind needs them.
        reordered: An input with its labels in another order, which runs that are compared share.
        shown: Members of the input in an answer, beside those that all kinds have.
        twin: The subject as if all labels were equally frequent, for those metrics that it holds something for; None
            where there is no such thing.
        findings: What the numbers mean, in words.
        variants: What a report says of one metric of an input; its value with the default parameters.
        listed: What is kept of one metric, whatever the report says of it, so that lists can be sorted by it.
        of_units: What single units are looked at by; nothing.
        details: What belongs to the values but is no metric; nothing.
    """

    inputs: Callable[[MatrixInput], frozenset[Inputs]]
    ranked: tuple[AnyMetric, ...]
    units: Callable[[MatrixInput], Units]
    reordered: Callable[[MatrixInput, tuple[str, ...]], MatrixInput]
    shown: Callable[[MatrixInput], Mapping[str, Any]]
    twin: Callable[[Subject], Subject | None]
    findings: Callable[[MatrixInput, Subject, Mapping[str, float | None], PerClass], Iterable[Finding]]
    variants: Callable[[MatrixInput, AnyMetric], Iterable[Reported]] = lambda _, metric: (Reported.plain(metric),)
    listed: Callable[[AnyMetric], Iterable[Reported]] = lambda metric: (Reported.plain(metric),)
    of_units: tuple[AnyMetric, ...] = ()
    details: Callable[[MatrixInput, Subject, Options], Mapping[str, Any]] = lambda _, __, ___: {}
