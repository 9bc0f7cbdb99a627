"""Ranking metrics by their definitions: exact fractions over every order of tied items, one query at a time."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import groupby, permutations, product

Number = Fraction | float


class Ranking(list[int]):
    """Relevances of the items that were retrieved, in their order; -1 is not judged. All others are `missed`."""

    def __init__(self, placed: Sequence[int], missed: Sequence[int] = ()) -> None:
        super().__init__(placed)
        self.missed = [*missed]

    @property
    def relevant(self) -> int:
        return sum(rel > 0 for rel in [*self, *self.missed])

    @property
    def items(self) -> int:
        return len(self) + len(self.missed)


def orders(relevance: Sequence[float], scores: Sequence[float]) -> list[Ranking]:
    """Relevances in every order that falling scores allow."""
    rows = sorted(zip(scores, map(int, relevance), strict=True), key=lambda row: -row[0])
    missed = [rel for score, rel in rows if score == -math.inf]
    placed = [row for row in rows if row[0] > -math.inf]
    blocks = [[rel for _, rel in block] for _, block in groupby(placed, key=lambda row: row[0])]
    return [
        Ranking([rel for block in chosen for rel in block], missed) for chosen in product(*map(permutations, blocks))
    ]


def _hits(ranking: Sequence[int], k: int) -> int:
    return sum(rel > 0 for rel in ranking[:k])


def _average_precision(ranking: Ranking, k: int, most: int) -> Fraction | None:
    if ranking.relevant == 0:
        return None
    found = sum(
        (Fraction(_hits(ranking, i), i) for i in range(1, min(k, len(ranking)) + 1) if ranking[i - 1] > 0), Fraction()
    )
    return found / most


def _dcg(ranking: Sequence[int], k: int, gain: Callable[[int], int]) -> float:
    return math.fsum(gain(max(rel, 0)) / math.log2(place + 1) for place, rel in enumerate(ranking[:k], start=1))


def _ndcg(ranking: Ranking, k: int, gain: Callable[[int], int]) -> float | None:
    best = _dcg(sorted([*ranking, *ranking.missed], reverse=True), k, gain)
    return _dcg(ranking, k, gain) / best if best else None


def _first(ranking: Ranking) -> int | None:
    return next((place for place, rel in enumerate(ranking, start=1) if rel > 0), None)


def _pairs(ranking: Ranking) -> Fraction | None:
    """What was not retrieved stands behind all that was, and is tied."""
    relevant = ranking.relevant
    if relevant in (0, ranking.items):
        return None
    missed = sum(rel > 0 for rel in ranking.missed)
    others = len(ranking.missed) - missed
    won = sum(a > 0 and b <= 0 for i, a in enumerate(ranking) for b in ranking[i + 1 :])
    won += _hits(ranking, len(ranking)) * others
    return (won + Fraction(missed * others, 2)) / (relevant * (ranking.items - relevant))


def _bpref(ranking: Ranking) -> Fraction | None:
    """As trec_eval goes down the list."""
    if not ranking.relevant:
        return None
    judged = [rel for rel in [*ranking, *ranking.missed] if rel >= 0]
    bound = min(ranking.relevant, len(judged) - ranking.relevant)
    found, above = Fraction(), 0
    for rel in ranking:
        above += rel == 0
        if rel > 0:
            found += 1 - Fraction(min(above, ranking.relevant), bound) if above else 1
    return found / ranking.relevant


def _stop(ranking: Ranking, k: int, highest: int = 4) -> Fraction:
    found, left = Fraction(), Fraction(1)
    for place, rel in enumerate(ranking[:k], start=1):
        stops = Fraction((1 << max(rel, 0)) - 1, 1 << highest)
        found += left * stops / place
        left *= 1 - stops
    return found


def _f1(precision: Fraction, recall: Fraction) -> Fraction:
    return 2 * precision * recall / (precision + recall) if precision else Fraction()


def _relevance(rel: int) -> int:
    return rel


def _exponential(rel: int) -> int:
    return (1 << rel) - 1


# Of one order of the items; None is no value.
OF_ONE: dict[str, Callable[[Ranking, int], Number | None]] = {
    "precision_at_k": lambda r, k: Fraction(_hits(r, k), k),
    "recall_at_k": lambda r, k: Fraction(_hits(r, k), r.relevant) if r.relevant else None,
    "hit_rate_at_k": lambda r, k: Fraction(_hits(r, k) > 0),
    "fall_out_at_k": lambda r, k: (
        Fraction(min(k, len(r)) - _hits(r, k), r.items - r.relevant) if r.relevant < r.items else None
    ),
    "average_precision_at_k": lambda r, k: _average_precision(r, k, r.relevant),
    "average_precision_at_k attainable": lambda r, k: _average_precision(r, k, min(k, r.relevant)),
    "average_precision_at_k places": lambda r, k: (
        sum((Fraction(_hits(r, i), i) for i in range(1, min(k, len(r)) + 1)), Fraction()) / max(min(k, len(r)), 1)
        if r.relevant
        else None
    ),
    "dcg_at_k": lambda r, k: _dcg(r, k, _relevance),
    "dcg_at_k exponential": lambda r, k: _dcg(r, k, _exponential),
    "ndcg_at_k": lambda r, k: _ndcg(r, k, _relevance),
    "ndcg_at_k exponential": lambda r, k: _ndcg(r, k, _exponential),
    "f1_at_k": lambda r, k: _f1(Fraction(_hits(r, k), k), Fraction(_hits(r, k), r.relevant)) if r.relevant else None,
    "ndcg": lambda r, _: _ndcg(r, r.items, _relevance),
    "ndcg exponential": lambda r, _: _ndcg(r, r.items, _exponential),
    "bpref": lambda r, _: _bpref(r),
    "rank_biased_precision": lambda r, _: sum(
        (Fraction(1, 5) * Fraction(4, 5) ** i for i, rel in enumerate(r) if rel > 0), Fraction()
    ),
    "expected_reciprocal_rank": _stop,
    "judged_at_k": lambda r, k: Fraction(sum(rel >= 0 for rel in r[:k]), min(k, len(r))) if r else None,
    "mean_average_precision": lambda r, _: _average_precision(r, len(r), r.relevant),
    "mean_reciprocal_rank": lambda r, k: (
        None if not r.relevant else Fraction(1, first) if (first := _first(r)) and first <= k else Fraction(0)
    ),
    "mean_rank": lambda r, _: None if not r.relevant else Fraction(first) if (first := _first(r)) else math.inf,
    "r_precision": lambda r, _: Fraction(_hits(r, R), R) if (R := r.relevant) else None,
    "query_auc": lambda r, _: _pairs(r),
}


def of_query(name: str, relevance: Sequence[float], scores: Sequence[float], k: int) -> float | None:
    """Expectation over all orders of tied items."""
    values = [OF_ONE[name](ranking, k) for ranking in orders(relevance, scores)]
    known = [value for value in values if value is not None]
    if not known:
        return None
    exact = [value for value in known if isinstance(value, Fraction)]
    if len(exact) == len(known):
        return float(sum(exact, Fraction()) / len(exact))
    return math.fsum(map(float, known)) / len(known)
