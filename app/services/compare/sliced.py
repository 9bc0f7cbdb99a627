"""Runs compared slice by slice: on the samples in each slice alone, and metrics whose order turns around in all."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from app.domain.decisions import PairVerdict
from app.domain.division import Where, divided, slice_text
from app.domain.errors import OutOfReach
from app.domain.findings import Finding
from app.domain.slices import Places
from app.domain.wording import names as names_of
from app.kernel.compare.rankings import Adjustment, adjust
from app.services.compare.answers import ComparedMetric, ComparedSlice, RunComparison
from app.services.compare.comparison_answer import compared_metrics
from app.services.estimands import Better
from app.services.estimates.run_data import in_all_runs
from app.services.runs.aligned import Runs
from app.services.runs.comparison import Comparison

# Samples that a slice has in every run.
FEWEST: Final = 30
# Differences of all slices in one answer.
_MOST_DIFFERENCES: Final = 20_000


def with_slices(answer: RunComparison, whole: Comparison, by: Sequence[str], adjustment: Adjustment) -> RunComparison:
    """The answer about all samples with the same about every slice of some attributes that has enough samples in all
    runs; p of a metric is adjusted over all slices, pairs and classes.

    Raises:
        InvalidInput: a run has no samples with such an attribute.
        OutOfReach: the differences are too many.
    """
    estimands = [one for one in whole.estimands if not one.is_of_slices]
    slices: list[ComparedSlice] = []
    findings, notes = [*(answer.findings or ())], [*answer.notes]
    for name in by:
        parts, small = _divided(whole.runs, name)
        if small:
            notes.append(f"Left out, with fewer than {FEWEST} samples in a run: {names_of(small)}.")
        each = len(whole.pairs) * sum(len(one.names) for one in estimands)
        if (len(slices) + len(parts)) * each > _MOST_DIFFERENCES:
            raise OutOfReach(
                f"more than {_MOST_DIFFERENCES} differences of slices; ask for fewer metrics", pointer="/by"
            )
        own = []
        for where, places in parts:
            inside = Comparison(whole.runs.within(places), estimands, whole.settings, pairs=whole.pairs)
            sizes = [int(record.n_rows) for record in inside.runs.records]
            own.append(ComparedSlice(where=where, n_samples=sizes, metrics=compared_metrics(inside, Adjustment.NONE)))
        findings += _turned(name, answer.metrics, own)
        slices += own
    adjusted = _adjusted(slices, [one.names for one in estimands], adjustment)
    return replace(answer, slices=adjusted, findings=findings or None, notes=notes)


def _divided(runs: Runs, name: str) -> tuple[list[tuple[Where, list[Places]]], list[str]]:
    """Slices that have enough samples in every run, with the places of these in each; and the names of all others."""
    found = [divided(one.source, name, FEWEST) for one in runs.data]
    parts = in_all_runs([enough for enough, _ in found])
    known = [slice_text(where) for where, _ in parts]
    every = dict.fromkeys(slice_text(one.where) for enough, small in found for one in (*enough, *small))
    return parts, [text for text in every if text not in known]


def _adjusted(
    slices: Sequence[ComparedSlice], families: Iterable[Sequence[str]], adjustment: Adjustment
) -> list[ComparedSlice]:
    """The slices, with the p of each family of values adjusted over all of them."""
    metrics = [dict(one.metrics) for one in slices]
    for names in families:
        places = [(own, name) for own in metrics for name in names]
        pairs = [own[name].differences for own, name in places]
        p = np.array([[one.p_value for one in each] for each in pairs])
        adjusted = adjust(p.ravel(), adjustment).reshape(p.shape)
        for (own, name), each, values in zip(places, pairs, adjusted, strict=True):
            pairs_of = [replace(one, p_adjusted=p) for one, p in zip(each, values.tolist(), strict=True)]
            own[name] = replace(own[name], differences=pairs_of)
    return [replace(one, metrics=own) for one, own in zip(slices, metrics, strict=True)]


def _turned(by: str, metrics: Mapping[str, ComparedMetric], slices: Sequence[ComparedSlice]) -> list[Finding]:
    """Settled differences of two runs whose sign is the other one in every slice: the reversal of Simpson (1951)."""
    found = []
    for name, metric in metrics.items():
        if len(slices) < 2 or metric.better is Better.NEAREST or name not in slices[0].metrics:
            continue
        for place, pair in enumerate(metric.differences):
            whole = pair.difference or 0.0
            own = [one.metrics[name].differences[place].difference or 0.0 for one in slices]
            settled = pair.verdict in (PairVerdict.BETTER, PairVerdict.WORSE)
            if not settled or max(one * whole for one in own) >= 0.0:
                continue
            found.append(
                Finding.warning(
                    "order_turns_in_slices",
                    f"{name} of the first run is {'higher' if whole > 0 else 'lower'} over all samples, and "
                    f"the other way round in each of the {len(slices)} slices of {by}: what is compared are the shares "
                    "of the slices too.",
                    metric=name,
                    by=by,
                    a=pair.a,
                    b=pair.b,
                )
            )
    return found
