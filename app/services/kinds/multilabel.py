"""Samples with any number of labels."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from app.domain.findings import Finding
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.wording import name, names, number, share
from app.kernel.matrix.table import LabelTable
from app.kernel.metrics.card import INPUTS_OF, Inputs, Task
from app.kernel.metrics.expression import Subject
from app.kernel.metrics.families.label_sets import hamming_loss
from app.kernel.metrics.families.rate_means import g_mean, h_mean
from app.kernel.metrics.families.rates import precision, recall
from app.kernel.uncertainty.intervals import undercovers
from app.kernel.uncertainty.units import LabelUnits
from app.services.kinds.kind import PerClass, UnitKind

_WITHOUT_SCORES = frozenset({Inputs.MATRIX, Inputs.LABELS})
# With fewer samples that have a label little is known of it.
_FEW = 10
# Labels that are found less often than this are weak, where nearly all answers are right.
_WEAK, _NEARLY_ALL = 0.5, 0.9
_MOST_NAMED = 20


def _inputs(source: MatrixInput) -> frozenset[Inputs]:
    return INPUTS_OF[Task.MULTILABEL] if "rule" in source.facts else _WITHOUT_SCORES


def _units(source: MatrixInput) -> LabelUnits:
    """The samples with their labels.

    Raises:
        ValueError: they are not at hand.
    """
    samples = source.samples
    if samples is None:
        raise ValueError("expected the labels of the samples")
    return LabelUnits(np.asarray(samples.truth, dtype=bool), np.asarray(samples.predicted, dtype=bool), samples.outputs)


def _reordered(source: MatrixInput, labels: tuple[str, ...]) -> MatrixInput:
    order = [source.labels.index(label) for label in labels]
    samples, facts = source.samples, dict(source.facts)
    if samples is not None:
        outputs = None if samples.outputs is None else samples.outputs[:, order]
        samples = replace(
            samples, truth=samples.truth[:, order], predicted=samples.predicted[:, order], outputs=outputs
        )
    if isinstance(facts.get("threshold"), list):
        facts["threshold"] = [facts["threshold"][place] for place in order]
    return replace(source, labels=labels, counts=source.counts[order], samples=samples, facts=facts)


def _shown(source: MatrixInput) -> Mapping[str, Any]:
    return {"label_matrices": dict(zip(source.labels, source.counts.tolist(), strict=True))}


def _twin(subject: Subject) -> Subject:
    table: LabelTable = subject.parts[Inputs.MATRIX]
    return Subject({Inputs.MATRIX: table.balanced()})


def _findings(
    source: MatrixInput, _: Subject, values: Mapping[str, float | None], per_class: PerClass
) -> Iterator[Finding]:
    found = source.counts.astype(np.float64)
    with_label, predicted = found[:, 1].sum(axis=-1), found[:, :, 1].sum(axis=-1)
    never = [
        label for label, said, there in zip(source.labels, predicted, with_label, strict=True) if there and not said
    ]
    if never:
        yield Finding.warning(
            "labels_never_predicted",
            f"No sample is predicted to have {names(never)}, though some do. The recall is 0 there, and so are "
            f"{g_mean.key} and {h_mean.key}; {precision.key} does not exist.",
            labels=never[:_MOST_NAMED],
        )
    if source.content is Content.counts:
        few = [label for label, there in zip(source.labels, with_label, strict=True) if 0 < there < _FEW]
        if few:
            yield Finding.warning(
                "labels_with_few_samples",
                f"Fewer than {_FEW} samples have {names(few)}: little is known of "
                f"{'these labels' if few[1:] else 'this label'}.",
                labels=few[:_MOST_NAMED],
            )
        if not source.is_grouped and undercovers(with_label):
            smallest = int(with_label[with_label > 0].min())
            yield Finding.note(
                "label_limits_narrow",
                f"With {len(source.labels)} labels, and only {smallest} samples with one of them, the limits of "
                f"{h_mean.key} and {g_mean.key} are too narrow and too low.",
                labels=len(source.labels),
                smallest=smallest,
            )
    yield from _hidden(source, values, per_class)


def _hidden(source: MatrixInput, values: Mapping[str, float | None], per_class: PerClass) -> Iterator[Finding]:
    """Labels that are mostly missed while nearly every answer is right, since most labels are absent."""
    loss = values.get(hamming_loss.key)
    if loss is None or 1.0 - loss < _NEARLY_ALL:
        return
    recalls = {label: per_class[label]["prevalence_insensitive"].get(recall.key) for label in source.labels}
    weak = {label: value for label, value in recalls.items() if value is not None and value < _WEAK}
    if weak:
        worst = min(weak, key=weak.__getitem__)
        yield Finding.warning(
            "weak_labels_hidden",
            f"{hamming_loss.key} hides weak labels: it is {number(loss)}, because most answers are that a rare label "
            f"is absent. Less than half of the samples that have {names(list(weak))} are found; of {name(worst)} it is "
            f"{share(weak[worst])}.",
            recalls={label: weak[label] for label in list(weak)[:_MOST_NAMED]},
            hamming_loss=loss,
        )


MULTILABEL_KIND = UnitKind(
    inputs=_inputs,
    ranked=(h_mean,),
    units=_units,
    reordered=_reordered,
    shown=_shown,
    twin=_twin,
    findings=_findings,
)
