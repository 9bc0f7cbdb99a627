"""A comparison of runs as it is answered and kept."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.domain.evaluation import EvaluationRecord
from app.kernel.compare.drift import ChiSquared, bhapkar, bowker, prediction_table, stuart_maxwell
from app.kernel.compare.many import cochran_q, confidence_set, kendall_tau, rank_runs
from app.kernel.compare.multiplicity import Adjustment, adjust
from app.kernel.numerics.arrays import Array
from app.services.compare.fold_tests import fold_test
from app.services.json_values import Json, listed, plain
from app.services.runs.comparison import Comparison
from app.services.runs.differences import Difference
from app.services.runs.propriety import improper_preferences

# With a smaller share of draws in which every run has a value, nothing is said about who may be best.
_FEWEST_DEFINED = 0.95
_MOST_DISAGREEMENTS = 50


@dataclass(frozen=True, slots=True, eq=False)
class _Value:
    """One value that runs are compared on: its name, where it stands, and the scores (R), higher is better."""

    name: str
    estimand: int
    place: int
    scores: Array


def comparison_answer(comparison: Comparison, *, baseline: int | None, adjustment: Adjustment) -> Json:
    """Everything that is said about runs: per metric, between metrics, and how it was found out."""
    records = comparison.runs.records
    values = list(_values(comparison))
    names = [_name(record) for record in records]
    folds = comparison.runs.fold_values(comparison.estimands)
    metrics: Json = {}
    for index in range(len(comparison.estimands)):
        by_value = comparison.differences(index)
        adjusted = adjust(np.array([[one.test.p for one in of_value] for of_value in by_value]).ravel(), adjustment)
        shares = adjusted.reshape(len(by_value), len(comparison.pairs))
        for value in (value for value in values if value.estimand == index):
            answer = _metric(comparison, value, by_value[value.place], shares[value.place])
            if folds is not None:
                _add_fold_tests(answer, folds[index][:, :, value.place], comparison, value)
            metrics[value.name] = answer
    improper = improper_preferences(comparison.runs, comparison.estimands, comparison.pairs, comparison.prevalence)
    return {
        "evaluations": [_run(record) for record in records],
        "baseline": None if baseline is None else str(records[baseline].id),
        "design": _design(comparison, adjustment),
        "metrics": metrics,
        "rank_agreement": _agreement(values),
        "disagreements": _disagreements(values, comparison, names),
        **_omnibus(comparison),
        **({"findings": improper} if improper else {}),
        "notes": _notes(comparison),
    }


def _values(comparison: Comparison) -> Iterator[_Value]:
    for index, estimand in enumerate(comparison.estimands):
        for place, name in enumerate(estimand.names):
            yield _Value(name, index, place, comparison.scores(index)[:, place])


def _run(record: EvaluationRecord) -> Json:
    return {
        "id": str(record.id),
        "model": {"name": record.model.name, "version": record.model.version},
        "dataset": {
            "name": record.dataset.name,
            "version": record.dataset.version,
            "split": record.dataset.split,
        },
        "n_samples": int(record.n_samples),
    }


def _name(record: EvaluationRecord) -> str:
    return record.model.name if record.model.version is None else f"{record.model.name} {record.model.version}"


def _design(comparison: Comparison, adjustment: Adjustment) -> Json:
    settings, pairing = comparison.settings, comparison.runs.pairing
    design: Json = {
        "paired": pairing.paired,
        "bond": pairing.design.value,
        "reason": pairing.reason,
        "class_counts": "fixed",
        **comparison.design,
        "level": settings.level,
        "rope": settings.rope,
        "seed": settings.seed,
        "multiplicity": {"method": adjustment.value, "family": "all pairs of one metric, and its classes for a list"},
    }
    if comparison.prevalence.shares is not None:
        design["common_prevalence"] = listed(comparison.prevalence.shares)
    return design


def _metric(comparison: Comparison, value: _Value, differences: Sequence[Difference], adjusted: Array) -> Json:
    records = comparison.runs.records
    estimand = comparison.estimands[value.estimand]
    found = comparison.values[value.estimand][:, value.place]
    ranks = ranks_of(value.scores)
    answer: Json = {
        "values": listed(found),
        "ranks": ranks,
        "best": str(records[ranks.index(1)].id) if 1 in ranks else None,
        "better": None if estimand.preference is None else estimand.preference.better.value,
        "prevalence": "insensitive" if estimand.insensitive else "observed",
        **_ranking(comparison, value),
        "differences": [
            _difference(records, one, float(p)) for one, p in zip(differences, adjusted.tolist(), strict=True)
        ],
    }
    if comparison.prevalence.moves(estimand):
        answer["prevalence"] = "reprojected" if comparison.prevalence.reachable else "incomparable"
        answer["observed_values"] = listed(comparison.observed[value.estimand][:, value.place])
    omnibus = comparison.omnibus(value.estimand, value.place)
    if omnibus is not None:
        answer["omnibus"] = omnibus
    return answer


def _add_fold_tests(answer: Json, values: Array, comparison: Comparison, value: _Value) -> None:
    """Tests of the differences over the folds, beside those over the samples."""
    estimand, settings = comparison.estimands[value.estimand], comparison.settings
    for entry, (first, second) in zip(answer["differences"], comparison.pairs, strict=True):
        found = fold_test(values[first], values[second], estimand.preference, level=settings.level, rope=settings.rope)
        if found is not None:
            entry["folds"] = found


def ranks_of(scores: Array) -> list[int | None]:
    """Ranks (R) from 1 for the highest, equal scores sharing one; None without a score."""
    return [None if np.isnan(score) else int((scores > score).sum()) + 1 for score in scores.tolist()]


def _ranking(comparison: Comparison, value: _Value) -> Json:
    """Who may be best, from joint draws."""
    nothing: Json = {"probability_best": None, "expected_ranks": None, "rank_intervals": None, "may_be_best": None}
    better = comparison.estimands[value.estimand].preference
    found = comparison.drawn(value.estimand)
    if found is None or better is None or np.isnan(value.scores).any():
        return nothing
    drawn = better.score(found[:, :, value.place])
    kept = drawn[np.isfinite(drawn).all(axis=1)]
    if len(kept) < _FEWEST_DEFINED * len(drawn):
        return nothing
    records = comparison.runs.records
    ranking = rank_runs(kept, comparison.settings.level)
    possible = confidence_set(kept, value.scores, comparison.settings.level).may_be_best
    return {
        "probability_best": listed(ranking.best),
        "expected_ranks": listed(ranking.expected_rank),
        "rank_intervals": [[float(low), float(high)] for low, high in zip(ranking.low, ranking.high, strict=True)],
        "may_be_best": [str(record.id) for record, may in zip(records, possible.tolist(), strict=True) if may],
    }


def _difference(records: Sequence[EvaluationRecord], found: Difference, adjusted: float) -> Json:
    test = found.test
    answer: Json = {
        "a": str(records[found.first].id),
        "b": str(records[found.second].id),
        "difference": plain(found.value),
        "low": plain(test.low),
        "high": plain(test.high),
        "p_value": plain(test.p),
        "p_adjusted": plain(adjusted),
        "probability_a_better": plain(found.first_better),
        "probability_equivalent": plain(found.equivalent),
        "probability_error": plain(found.probability_error),
        "method": f"{found.limits}, {test.method}",
    }
    if test.smallest is not None:
        answer["p_range"] = [plain(test.smallest), plain(test.p)]
    if test.reason is not None:
        answer["reason"] = test.reason
    if test.discordant is not None:
        answer["discordant"] = int(test.discordant)
    return answer


def _agreement(values: Sequence[_Value]) -> Json:
    table = kendall_tau(np.stack([value.scores for value in values]))
    return {"metrics": [value.name for value in values], "kendall_tau": [listed(row) for row in table]}


def _disagreements(values: Sequence[_Value], comparison: Comparison, names: Sequence[str]) -> list[Json]:
    """Pairs of metrics that crown different runs."""
    records, found = comparison.runs.records, []
    for one, other in itertools.combinations(values, 2):
        if np.isnan(one.scores).any() or np.isnan(other.scores).any():
            continue
        mine, theirs = int(one.scores.argmax()), int(other.scores.argmax())
        if one.scores[mine] == one.scores[theirs] or other.scores[mine] == other.scores[theirs]:
            continue
        found.append(
            {
                "metrics": [one.name, other.name],
                "prefer": [str(records[mine].id), str(records[theirs].id)],
                "message": f"{_preference(one, comparison, names, mine, theirs)}, but "
                f"{_preference(other, comparison, names, theirs, mine)}.",
            }
        )
        if len(found) == _MOST_DISAGREEMENTS:
            break
    return found


def _preference(value: _Value, comparison: Comparison, names: Sequence[str], best: int, rival: int) -> str:
    found = comparison.values[value.estimand][:, value.place]
    return f"{value.name} prefers {names[best]} ({found[best]:.4g}) to {names[rival]} ({found[rival]:.4g})"


def _omnibus(comparison: Comparison) -> Json:
    """Tests of all runs together, for paired runs."""
    joint = comparison.runs.pairing.joint
    if joint is None or not comparison.independent:
        return {}
    if joint.n_runs > 2:
        return {"omnibus": {"test": "cochran_q", "of": "equal accuracy", **_chi_squared(cochran_q(joint))}}
    table = prediction_table(joint)
    tests: Mapping[str, ChiSquared] = {
        "stuart_maxwell": stuart_maxwell(table),
        "bhapkar": bhapkar(table),
        "bowker": bowker(table),
    }
    return {
        "prediction_drift": {
            "message": "Do the runs predict the classes equally often? "
            "This says nothing about which is right more often.",
            **{name: _chi_squared(found) for name, found in tests.items()},
        }
    }


def _chi_squared(found: ChiSquared) -> Json:
    return {"statistic": plain(found.statistic), "df": found.freedom, "p_value": plain(found.p)}


def _notes(comparison: Comparison) -> list[str]:
    records, notes = comparison.runs.records, []
    moved = [estimand.text for estimand in comparison.estimands if comparison.prevalence.moves(estimand)]
    if moved and comparison.prevalence.reachable:
        notes.append(
            "The runs have different class mixes. Metrics that prevalence does not move are compared as they are; "
            f"{', '.join(moved)} at one prevalence, the mean of the runs' (design.common_prevalence), assuming that "
            "how each class is predicted does not depend on how frequent it is. The values as they were are in "
            "observed_values."
        )
    elif moved:
        notes.append(
            "The runs have different class mixes, and a class that some run has no samples of: "
            f"{', '.join(moved)} cannot be brought to one prevalence and are not compared."
        )
    if comparison.runs.pairing.joint is not None and any(
        record.n_samples != comparison.runs.pairing.joint.n for record in records
    ):
        notes.append(
            "Only the samples that all runs have in common are compared; values can differ from the evaluations'."
        )
    positives = {record.labels[record.positive] for record in records if record.positive is not None}
    if len(positives) > 1:
        notes.append("The runs name different positive classes; that of the first is meant throughout.")
    return notes + comparison.notes
