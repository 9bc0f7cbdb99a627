"""Several inputs of one kind as one: their samples side by side, or the sum of their counts.

The result is what one request of all samples would have given.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import accumulate
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import IncomparableLabels, IncomparableRuns, InvalidInput, NoSamples, NotForKind, TooLarge
from app.domain.inputs.classified import SUM_TOLERANCE, assumed_threshold, decide, decide_by_threshold
from app.domain.inputs.clustering import tallied
from app.domain.inputs.columns import designed
from app.domain.inputs.content import (
    CLUSTERS_FACT,
    DATA_FACT,
    DECISIONS_FACT,
    FEATURES_FACT,
    GROUPS_FACT,
    LARGEST_TOTAL,
    MERGED_FACT,
    WEIGHT_FACT,
    Content,
    why_not_saved,
)
from app.domain.inputs.folds import Folds, attribute_names, ignored_facts, output_axes, pooled
from app.domain.inputs.kinds import KINDS, in_class_order, needs_samples, places_among, restricted
from app.domain.inputs.labels import listed, shown
from app.domain.inputs.matrices import MOST_SAMPLES, MatrixInput, check_class_count
from app.domain.inputs.multilabel import MOST_ENTRIES
from app.domain.inputs.ranking import RELEVANT_FROM
from app.domain.inputs.samples import DecidedBy, Samples, joined, one_column
from app.kernel.metrics.card import Task

# Numbers of outputs of samples, which are all in memory.
MOST_OUTPUTS: Final = 50_000_000
_PLACE: Final = "/evaluations"
_RENORMALIZED, _LEFT_OUT = "renormalized", "queries_without_judgements"
# Facts that are not those of all because they are those of the first.
_OF_PARTS: Final = frozenset({DATA_FACT, MERGED_FACT, WEIGHT_FACT, "sum_tolerance"})
_NAMES: Final = {"None": "none", "[]": "none", "False": "none", "True": "some"}
_Facts = dict[str, Any]


def merged(parts: Sequence[MatrixInput], *, as_folds: bool = False) -> MatrixInput:
    """Return several inputs as one, or ``as_folds`` each beside the sum; faults name the place of a part in
    ``/evaluations``.

    Raises:
        IncomparableRuns, IncomparableLabels: they are of different kinds, or samples were judged differently.
        NotForKind: they are folds themselves, or cannot be folds.
        NoSamples: the samples of one are not saved, and its counts do not say what they do.
        InvalidInput: a sample is there twice, or rates would have to be added.
        TooLarge: there are more samples than one request may have.
    """
    _check(parts, as_folds=as_folds)
    if as_folds:
        labels, form = _all_names([part.labels for part in parts]), _form(parts)
        return pooled([form([part], labels) for part in parts], "", places=_PLACE)
    _check_ids(parts)
    return together(parts)


def together(parts: Sequence[MatrixInput]) -> MatrixInput:
    """Return inputs as one that are known to be so: nothing is checked of what `merged` checks."""
    if len(parts) == 1:
        return parts[0]
    parts = _of_common_clusters(parts) if parts[0].task is Task.CLUSTERING else parts
    return _form(parts)(parts, _all_names([part.labels for part in parts]))


def _form(parts: Sequence[MatrixInput]) -> Callable[[Sequence[MatrixInput], tuple[str, ...]], MatrixInput]:
    return _sampled if all(part.samples is not None for part in parts) else _counted


def check_streamed(parts: Sequence[MatrixInput]) -> None:
    """Check that inputs whose samples are read again, and not held in memory, can be one.

    Raises:
        IncomparableRuns: they are of different kinds or labels, or samples were judged differently.
    """
    _agree(parts, "the kind", lambda part: part.kind)
    _check_alike(parts, as_folds=False)
    _agree(parts, "the labels", lambda part: part.labels)


def _check(parts: Sequence[MatrixInput], *, as_folds: bool) -> None:
    """Refuse parts that cannot be one input."""
    _agree(parts, "the kind", lambda part: part.kind)
    for place, part in enumerate(parts):
        _check_part(part, f"{_PLACE}/{place}", as_folds=as_folds)
    _check_alike(parts, as_folds=as_folds)
    _check_samples([part.samples for part in parts if part.samples is not None])
    if any(_has_outputs(part) for part in parts):
        _check_outputs(parts)


def _check_alike(parts: Sequence[MatrixInput], *, as_folds: bool) -> None:
    for what, value in _IN_COMMON:
        _agree(parts, what, value)
    if not as_folds:
        _agree(parts, "the threshold", _given_threshold)
    if len(_all_names([part.labels for part in parts])) == 2:
        _agree(parts, "the positive class", lambda part: None if part.positive is None else part.labels[part.positive])
    if sum(float(part.counts.sum()) for part in parts) > LARGEST_TOTAL:
        raise InvalidInput.at(_PLACE, "total_too_large", "expected counts that sum to at most 2^53")


# What samples were judged by, which all parts have to agree in.
_IN_COMMON: Final[tuple[tuple[str, Callable[[MatrixInput], Any]], ...]] = (
    ("group_ids in all or in none", lambda part: GROUPS_FACT in part.facts),
    (
        "sample_weight in all or in none",
        lambda part: part.came_weighed or (part.samples is not None and part.samples.weights is not None),
    ),
    ("the decisions", lambda part: part.facts.get(DECISIONS_FACT)),
    ("the number of features", lambda part: part.facts.get(FEATURES_FACT)),
    ("the rule of decision", lambda part: part.facts.get("rule")),
    ("the cutoffs", lambda part: part.facts.get("cutoffs")),
    ("relevant_from", lambda part: part.facts.get(RELEVANT_FROM)),
    ("the attributes", lambda part: sorted(attribute_names(part))),
    ("classes in all or in none", lambda part: bool(part.labels)),
)


def _check_part(part: MatrixInput, where: str, *, as_folds: bool) -> None:
    if part.kind == Folds.kind or (as_folds and not KINDS[part.kind].in_folds):
        kinds = listed([name for name, kind in KINDS.items() if kind.in_folds])
        what = (
            "runs that are no folds themselves"
            if part.kind == Folds.kind
            else f"runs of one of the kinds {kinds} as folds"
        )
        raise NotForKind(f"expected {what}, got {part.kind}", pointer=where)
    if part.facts.get(FEATURES_FACT) == 0:
        raise NotForKind("how far samples of different runs are from each other is not known", pointer=where)
    if part.content is Content.rates:
        detail = "expected counts: rates of data of unknown size cannot be added"
        raise InvalidInput.at(where, "rates_cannot_be_pooled", detail)
    if part.samples is None and is_made_of_samples(part):
        detail = f"the samples of this evaluation are not saved: {why_not_saved(part.facts)}"
        if part.facts.keys() & {DATA_FACT, MERGED_FACT}:
            detail += "; references are read again where all have one and no part was deleted, and not as folds"
        raise NoSamples(detail, pointer=where)


def _check_samples(samples: Sequence[Samples]) -> None:
    outputs = sum(one.outputs.size for one in samples if one.outputs is not None)
    for count, most, unit in (
        (sum(len(one.truth) for one in samples), MOST_SAMPLES, "samples"),
        (sum(one.truth.size for one in samples), MOST_ENTRIES, "labels of samples"),
        (outputs, MOST_OUTPUTS, "outputs of samples"),
    ):
        if count > most:
            raise TooLarge(f"expected at most {most} {unit} together, there are {count}", pointer=_PLACE)


def _has_outputs(part: MatrixInput) -> bool:
    """Has each sample a number for each class or label?"""
    of_classes = part.task in (None, Task.MULTILABEL)
    return of_classes and part.samples is not None and part.samples.outputs is not None


def _check_outputs(parts: Sequence[MatrixInput]) -> None:
    """Refuse parts of which some have outputs for other labels than the first."""
    first = parts[0]
    _agree(parts, "one output or one for each label", lambda part: _has_outputs(part) and output_axes(part))
    for place, part in enumerate(parts):
        if set(part.labels) != set(first.labels):
            detail = f"expected the labels of the first evaluation, {listed(first.labels)}, got {listed(part.labels)}"
            raise IncomparableLabels(detail, pointer=f"{_PLACE}/{place}")


def is_made_of_samples(part: MatrixInput) -> bool:
    """Do its counts not say all that the whole needs? Groups of one sample each may have others in other parts."""
    return GROUPS_FACT in part.facts or part.came_weighed or needs_samples(part)


def _agree(parts: Sequence[MatrixInput], what: str, value: Callable[[MatrixInput], Any]) -> None:
    """Refuse parts that differ in what samples were judged by."""
    wanted = value(parts[0])
    for place, part in enumerate(parts):
        if (found := value(part)) != wanted:
            there, here = (_NAMES.get(repr(one), repr(one)) for one in (wanted, found))
            detail = f"expected {what} as in the first evaluation, {there}, got {here}"
            raise IncomparableRuns(detail, pointer=f"{_PLACE}/{place}")


def _given_threshold(part: MatrixInput) -> Any:
    """The threshold that came with an input, or that of each label by name; None where none came."""
    found = None if "threshold_assumed" in part.facts else part.facts.get("threshold")
    return dict(zip(part.labels, found, strict=True)) if isinstance(found, list) else found


def _check_ids(parts: Sequence[MatrixInput]) -> None:
    """Refuse samples, or queries, that are in two of the runs."""
    known = {run: part.samples.ids for run, part in enumerate(parts) if part.samples is not None}
    columns = {run: column for run, column in known.items() if column is not None}
    ids = one_column([*columns.values()]) if columns else None
    if ids is None:
        return
    order = np.argsort(ids, kind="stable")
    again = order[1:][ids[order[1:]] == ids[order[:-1]]]
    if again.size:
        runs = np.repeat([*columns], [len(column) for column in columns.values()])
        places = np.concatenate([np.arange(len(column)) for column in columns.values()])
        row = int(again.min())
        earlier = int(np.argmax(ids == ids[row]))
        raise InvalidInput.at(
            f"{_PLACE}/{runs[row]}",
            "duplicate_sample_id",
            f"expected ids of samples that differ, got {again.size} that came before, the first "
            f"{shown(str(ids[row]))}: sample {places[row]} here, sample {places[earlier]} of evaluation "
            f"{runs[earlier]} (both counted from 0)",
        )


def _all_names(names: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the names of all parts, sorted where those of each part are, else in the order in which they come."""
    together = list(dict.fromkeys(name for own in names for name in own))
    for key in _ORDERS:
        try:
            if all(list(own) == sorted(own, key=key) for own in names):
                return tuple(sorted(together, key=key))
        except ValueError:
            continue
    return tuple(together)


# Of integers by value, of texts by alphabet, as classes that occur are sorted.
_ORDERS: Final[tuple[Callable[[str], Any], ...]] = (int, str)


def _of_common_clusters(parts: Sequence[MatrixInput]) -> list[MatrixInput]:
    """Clusterings with the names and codes of the clusters of all of them."""
    names = _all_names([tuple(part.facts[CLUSTERS_FACT]) for part in parts])
    found = []
    for part in parts:
        places, samples, counts = places_among(part.facts[CLUSTERS_FACT], names), part.samples, part.counts.copy()
        counts[:, 1] = places[counts[:, 1]]
        if samples is not None:
            samples = replace(samples, predicted=places[samples.predicted])
        facts = {**part.facts, CLUSTERS_FACT: list(names)}
        found.append(replace(part, counts=counts, samples=samples, facts=facts))
    return found


def _counted(parts: Sequence[MatrixInput], labels: tuple[str, ...]) -> MatrixInput:
    """The sum of the counts."""
    first = in_class_order(parts[0], labels)
    facts = {name: first.facts[name] for name in (CLUSTERS_FACT, DECISIONS_FACT) if name in first.facts}
    each = (in_class_order(part, labels).counts for part in parts)
    if first.task is Task.CLUSTERING:
        counts: NDArray[Any] = tallied(*np.concatenate([*each]).T)
    else:
        check_class_count(len(labels), _PLACE, fewest=min(len(labels), 2))
        counts = reduce(np.add, each)
    content = Content.counts if all(part.content is Content.counts for part in parts) else Content.weights
    facts |= _shared_facts(parts)
    return MatrixInput(first.kind, labels, first.positive, content, counts, facts=facts)


def _sampled(parts: Sequence[MatrixInput], labels: tuple[str, ...]) -> MatrixInput:
    """All samples as one input."""
    aligned = [in_class_order(part, labels) for part in parts]
    first, each = aligned[0], [part.weighed_samples for part in aligned]
    if first.task is not Task.CLUSTERING:
        check_class_count(len(labels), _PLACE, fewest=min(len(labels), 2))
    if first.task is Task.RANKING:
        # Codes of queries, whose ids stand beside each other.
        starts = accumulate((0 if one.ids is None else len(one.ids) for one in each), initial=0)
        each = [replace(one, predicted=one.predicted + start) for one, start in zip(each, starts, strict=False)]
    together, beside = designed(replace(joined(each), fold_sizes=None))
    facts = {name: fact for name, fact in first.facts.items() if name not in _OF_PARTS} | beside
    places = np.arange(together.size)
    if first.task is Task.RANKING and together.ids is not None:
        # Of queries, which stand in the order of their ids.
        places = np.argsort(together.ids, kind="stable")
    made = restricted(_decided(replace(first, facts=facts, samples=together), together), places)
    return replace(made, facts={**made.facts, **_shared_facts(parts)})


def _decided(source: MatrixInput, samples: Samples) -> MatrixInput:
    """An input whose samples are decided anew where that depends on all of them: on the order of their labels, of which
    the first of equals is taken, or on the range of scores for which no threshold was given.
    """
    outputs, facts = samples.outputs, source.facts
    if outputs is None or "rule" not in facts:
        return source
    predicted = samples.predicted
    if facts["rule"] == DecidedBy.ARGMAX:
        predicted = decide(outputs)[0]
    elif "threshold_assumed" in facts:
        threshold = assumed_threshold(float(outputs.min()), float(outputs.max()))
        facts = {**facts, "threshold": threshold}
        if source.task is None:
            predicted = decide_by_threshold(outputs, threshold, source.positive or 0)
        else:
            predicted = (outputs >= threshold).view(np.uint8)
    return replace(source, facts=facts, samples=replace(samples, predicted=predicted))


def _shared_facts(parts: Sequence[MatrixInput]) -> _Facts:
    """Facts that the samples themselves do not say any more."""
    facts: _Facts = {**ignored_facts(parts)}
    for name in (_RENORMALIZED, _LEFT_OUT):
        found = [part.facts[name] for part in parts if name in part.facts]
        if found:
            facts[name] = sum(found)
    tolerances = {part.facts.get("sum_tolerance", SUM_TOLERANCE) for part in parts}
    if _RENORMALIZED in facts and tolerances != {SUM_TOLERANCE}:
        facts["sum_tolerance"] = max(tolerances)
    return facts
