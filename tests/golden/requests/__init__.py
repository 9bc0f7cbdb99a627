"""All requests, in groups that each begin with nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.golden.calls import Call
from tests.golden.requests import (
    comparing,
    curving,
    drawing,
    gating,
    keeping,
    keys,
    kinds,
    later,
    matrices,
    mistaking,
    refusing,
    samples,
    slicing,
    telling,
    what_if,
)

GROUPS: Mapping[str, Sequence[Call]] = {
    "matrices": matrices.MATRICES,
    "intervals": matrices.INTERVALS,
    "predictions": samples.PREDICTIONS,
    "probabilities": samples.PROBABILITIES,
    "scores": samples.SCORES,
    "folds": samples.FOLDS,
    "rankings": samples.RANKINGS,
    "kinds": kinds.KINDS,
    "files": samples.FILES,
    "kept": keeping.KEPT,
    "lists": keeping.LISTS,
    "catalogue": keeping.CATALOGUE,
    "curves": curving.CURVES,
    "thresholds": curving.THRESHOLDS,
    "figures": drawing.FIGURES,
    "comparisons": comparing.COMPARISONS,
    "scored_comparisons": comparing.SCORED_COMPARISONS,
    "tournaments": comparing.TOURNAMENTS,
    "leaderboards": comparing.LEADERBOARDS,
    "gates": gating.GATES,
    "scored_gates": gating.SCORED_GATES,
    "projections": what_if.PROJECTIONS,
    "consistency": what_if.CONSISTENCY,
    "slices": slicing.SLICES,
    "keys": keys.KEYS,
    "webhooks": telling.WEBHOOKS,
    "later": later.LATER,
    "waiting": later.WAITING,
    "refused": refusing.REFUSED,
    "mistakes": mistaking.CALLS,
}
# Of services that are not as all others.
SETTINGS: Mapping[str, Mapping[str, Any]] = {"waiting": {"job_concurrency": 0}, "webhooks": {"job_concurrency": 0}}
