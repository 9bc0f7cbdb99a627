"""Ranking metrics as means over queries: of the first k items, and of whole lists.

An item is relevant if its relevance is above 0. Tied items count with their mean over all orders. Items that were judged
and not retrieved count among those that could be found, and have no place.
"""

import math
from functools import partial

import numpy as np

from app.kernel.metrics.card import Choice, Inputs, Number, Orientation, Prevalence, over_units
from app.kernel.metrics.conditions import (
    NO_IRRELEVANT,
    NO_PAIRS,
    NO_QUERIES,
    NO_RELEVANT,
    NOTHING_FOUND,
    NOTHING_RETRIEVED,
)
from app.kernel.numerics.arrays import Array, ratio
from app.kernel.units.queries import (
    Queries,
    chance_of_a_hit,
    expected_preference,
    expected_rank,
    expected_reciprocal,
    expected_stop,
)

_K = Number("k", 10.0, "how many places are looked at", minimum=1.0, integral=True, written=True)
_UP_TO = Number(
    "k", math.inf, "how many places are looked at; all by default", minimum=1.0, infinite=True, integral=True
)
_GAIN = Choice(
    "gain",
    "relevance",
    "what an item is worth: its relevance, or 2^relevance - 1",
    ("relevance", "exponential"),
)
_over_queries = partial(over_units, inputs=Inputs.QUERIES, prevalence=Prevalence.SENSITIVE, undefined=(NO_RELEVANT,))

# Differences of other libraries.
COUNTED_AS_ZERO = (
    "counts a query without relevant items as 0, where it has no value here: multiply by the share of queries that have "
    "relevant items"
)
TIES_BY_NAME = "orders tied items by their identifiers"
TIES_AS_SORTED = "orders tied items as its sorting leaves them"
_DIFFERS = {
    "trec_eval": f"{COUNTED_AS_ZERO}; {TIES_BY_NAME}",
    "ranx": f"{COUNTED_AS_ZERO}; {TIES_AS_SORTED}",
    "torchmetrics": f"{COUNTED_AS_ZERO}; {TIES_AS_SORTED}",
}


@_over_queries(
    headline=True,
    name="precision at k",
    symbol="P@k",
    formula=r"\frac{1}{|Q|} \sum_q \frac{\#\{\text{relevant in the first } k\}}{k}",
    sentence="Share of relevant items among the first k, mean over the queries; a shorter list is divided by k too.",
    elsewhere={"trec_eval": "P_k", "ranx": "precision@k", "torchmetrics": "RetrievalPrecision"},
    differs={
        "trec_eval": TIES_BY_NAME,
        "ranx": TIES_AS_SORTED,
        "torchmetrics": f"{TIES_AS_SORTED}; with adaptive_k it divides a shorter list by its length",
    },
    parameters=(_K,),
    undefined=(NO_QUERIES,),
    references=("beddar2025", "manning2008"),
)
def precision_at_k(q: Queries, k: float = 10.0) -> Array:
    return q.sums(q.expected_relevant, int(k)) / k


@_over_queries(
    name="recall at k",
    symbol="R@k",
    formula=r"\frac{1}{|Q|} \sum_q \frac{\#\{\text{relevant in the first } k\}}{\#\{\text{relevant}\}}",
    sentence="Share of the relevant items that are among the first k, mean over the queries that have relevant items.",
    elsewhere={"trec_eval": "recall_k", "ranx": "recall@k", "torchmetrics": "RetrievalRecall"},
    differs=_DIFFERS,
    parameters=(_K,),
    references=("beddar2025", "manning2008"),
)
def recall_at_k(q: Queries, k: float = 10.0) -> Array:
    return ratio(q.sums(q.expected_relevant, int(k)), q.relevant_items)


@_over_queries(
    name="F1 at k",
    symbol="F1@k",
    formula=r"\frac{1}{|Q|} \sum_q \frac{2\,\#\{\text{relevant in the first } k\}}{k + \#\{\text{relevant}\}}",
    sentence="Harmonic mean of precision at k and recall at k, mean over the queries that have relevant items.",
    elsewhere={"ranx": "f1@k"},
    differs={"ranx": f"{COUNTED_AS_ZERO}; {TIES_AS_SORTED}"},
    parameters=(_K,),
    references=("manning2008",),
    on_request=True,
)
def f1_at_k(q: Queries, k: float = 10.0) -> Array:
    found = 2.0 * q.sums(q.expected_relevant, int(k)) / (k + q.relevant_items)
    return np.where(q.relevant_items > 0, found, np.nan)


@_over_queries(
    name="hit rate at k",
    symbol="HR@k",
    formula=r"\frac{1}{|Q|} \sum_q [\text{a relevant item is among the first } k]",
    sentence="Share of the queries with a relevant item among the first k.",
    aliases=("success_at_k",),
    elsewhere={"trec_eval": "success_k", "ranx": "hit_rate@k", "torchmetrics": "RetrievalHitRate"},
    differs={"trec_eval": TIES_BY_NAME, "ranx": TIES_AS_SORTED, "torchmetrics": TIES_AS_SORTED},
    parameters=(_K,),
    undefined=(NO_QUERIES,),
    references=("manning2008",),
)
def hit_rate_at_k(q: Queries, k: float = 10.0) -> Array:
    return chance_of_a_hit(q.first_relevant, int(k))


@_over_queries(
    name="fall-out at k",
    formula=r"\frac{1}{|Q|} \sum_q \frac{\#\{\text{irrelevant in the first } k\}}{\#\{\text{irrelevant}\}}",
    sentence="Share of the irrelevant items that are among the first k, mean over the queries that have some.",
    elsewhere={"torchmetrics": "RetrievalFallOut"},
    differs={"torchmetrics": f"counts a query without irrelevant items as 1; {TIES_AS_SORTED}"},
    orientation=Orientation.LOWER,
    parameters=(_K,),
    undefined=(NO_IRRELEVANT,),
    references=("manning2008",),
)
def fall_out_at_k(q: Queries, k: float = 10.0) -> Array:
    irrelevant = np.minimum(q.retrieved_items, int(k)) - q.sums(q.expected_relevant, int(k))
    return ratio(irrelevant, q.irrelevant_items)


@_over_queries(
    name="average precision at k",
    symbol="AP@k",
    formula=r"\frac{1}{|Q|} \sum_q \frac{1}{D} \sum_{i \le k} rel_i P@i",
    sentence=(
        "Precision at each relevant item of the first k, summed and divided by all relevant items (or those that k "
        "places can hold); or the plain mean of the precisions at 1 to k; mean over the queries."
    ),
    aliases=("map_at_k",),
    elsewhere={"trec_eval": "map_cut_k", "ranx": "map@k", "torchmetrics": "RetrievalMAP"},
    differs={
        **_DIFFERS,
        "torchmetrics": f"divides by the relevant items among the first k; {COUNTED_AS_ZERO}; {TIES_AS_SORTED}",
    },
    parameters=(
        _K,
        Choice(
            "divide",
            "relevant",
            "D: the relevant items; at most k of them (attainable); or the mean of P@1 to P@k over all places, as "
            "Beddar-Wiesing et al. (2025, eq. 33) write it (places)",
            ("relevant", "attainable", "places"),
        ),
    ),
    references=("beddar2025", "manning2008", "mcsherry2008"),
)
def average_precision_at_k(q: Queries, k: float = 10.0, divide: str = "relevant") -> Array:
    whole = int(k)
    if divide == "places":
        precisions = q.sums(q.relevant_so_far / q.rank * q.retrieved, whole)
        places = np.clip(q.retrieved_items, 1, whole)
        return np.where(q.relevant_items > 0, precisions / places, np.nan)
    most = q.relevant_items if divide == "relevant" else np.minimum(q.relevant_items, whole)
    return ratio(q.sums(q.expected_precision, whole), most)


@_over_queries(
    name="discounted cumulative gain at k",
    symbol="DCG@k",
    formula=r"\frac{1}{|Q|} \sum_q \sum_{i \le k} \frac{gain_i}{\log_2(i + 1)}",
    sentence="What the first k items are worth, each divided by the logarithm of its place, mean over the queries.",
    elsewhere={"sklearn": "dcg_score", "ranx": "dcg@k"},
    differs={"ranx": TIES_AS_SORTED},
    range=(0.0, None),
    parameters=(_K, _GAIN),
    undefined=(NO_QUERIES,),
    references=("beddar2025", "jarvelin2002", "mcsherry2008"),
)
def dcg_at_k(q: Queries, k: float = 10.0, gain: str = "relevance") -> Array:
    return q.discounted(_gains(q.relevance, gain), int(k))


@_over_queries(
    headline=True,
    name="normalised discounted cumulative gain at k",
    symbol="nDCG@k",
    formula=r"\frac{1}{|Q|} \sum_q \frac{\mathrm{DCG}@k}{\mathrm{IDCG}@k}",
    sentence="DCG at k over that of the best order of the items, mean over the queries that have relevant items.",
    elsewhere={
        "sklearn": "ndcg_score",
        "trec_eval": "ndcg_cut_k",
        "ranx": "ndcg@k",
        "torchmetrics": "RetrievalNormalizedDCG",
    },
    differs={
        "sklearn": COUNTED_AS_ZERO,
        "trec_eval": f"{COUNTED_AS_ZERO}; {TIES_BY_NAME}",
        "ranx": f"{COUNTED_AS_ZERO}; {TIES_AS_SORTED}; gain=exponential is its ndcg_burges",
        "torchmetrics": COUNTED_AS_ZERO,
    },
    parameters=(_K, _GAIN),
    references=("beddar2025", "burges2005", "jarvelin2002", "mcsherry2008"),
)
def ndcg_at_k(q: Queries, k: float = 10.0, gain: str = "relevance") -> Array:
    return _normalised(q, gain, int(k))


@_over_queries(
    name="normalised discounted cumulative gain",
    symbol="nDCG",
    formula=r"\frac{1}{|Q|} \sum_q \frac{\mathrm{DCG}}{\mathrm{IDCG}}",
    sentence="DCG of all retrieved items over that of the best order of all items, mean over the queries that have "
    "relevant items.",
    elsewhere={"trec_eval": "ndcg", "ranx": "ndcg"},
    differs={
        "trec_eval": f"{COUNTED_AS_ZERO}; {TIES_BY_NAME}",
        "ranx": f"{COUNTED_AS_ZERO}; {TIES_AS_SORTED}",
    },
    parameters=(_GAIN,),
    references=("jarvelin2002", "mcsherry2008"),
    on_request=True,
)
def ndcg(q: Queries, gain: str = "relevance") -> Array:
    return _normalised(q, gain)


def _normalised(q: Queries, gain: str, k: int | None = None) -> Array:
    """DCG over that of the best order (Q), of the first k places or of all."""
    return ratio(q.discounted(_gains(q.relevance, gain), k), q.sums(_gains(q.ideal, gain) * q.discount, k))


def _gains(relevance: Array, gain: str) -> Array:
    return relevance if gain == "relevance" else np.exp2(relevance) - 1.0


@_over_queries(
    headline=True,
    name="mean average precision",
    symbol="MAP",
    formula=r"\frac{1}{|Q|} \sum_q \frac{1}{R} \sum_{i} rel_i P@i",
    sentence="Mean of the precisions at all relevant items, mean over the queries that have relevant items.",
    elsewhere={
        "trec_eval": "map",
        "ranx": "map",
        "torchmetrics": "RetrievalMAP",
        "sklearn": "label_ranking_average_precision_score",
    },
    differs={
        **_DIFFERS,
        "torchmetrics": f"leaves out items with scores of 0 and below; {COUNTED_AS_ZERO}; {TIES_AS_SORTED}",
        "sklearn": "gives tied items the worst place among them, and 1 to a sample without labels",
    },
    references=("manning2008", "mcsherry2008"),
)
def mean_average_precision(q: Queries) -> Array:
    return ratio(q.sums(q.expected_precision), q.relevant_items)


@_over_queries(
    headline=True,
    name="mean reciprocal rank",
    symbol="MRR",
    formula=r"\frac{1}{|Q|} \sum_q \frac{1}{k_q}",
    sentence="Mean over the queries that have relevant items of 1 / rank of the first of them; 0 where it is not among "
    "the first k.",
    aliases=("mrr",),
    elsewhere={"trec_eval": "recip_rank", "ranx": "mrr", "torchmetrics": "RetrievalMRR"},
    differs=_DIFFERS,
    parameters=(_UP_TO,),
    references=("beddar2025", "voorhees1999", "mcsherry2008"),
)
def mean_reciprocal_rank(q: Queries, k: float = math.inf) -> Array:
    return np.where(q.relevant_items > 0, expected_reciprocal(q.first_relevant, k), np.nan)


@_over_queries(
    name="mean rank",
    symbol="MR",
    formula=r"\frac{1}{|Q|} \sum_q k_q",
    sentence=(
        "Mean over the queries that have relevant items of the rank of the first of them; infinite if for one of them no "
        "relevant item was retrieved."
    ),
    elsewhere={"pykeen": "arithmetic_mean_rank"},
    differs={"pykeen": "takes every relevant item as a query of its own"},
    orientation=Orientation.LOWER,
    range=(1.0, None),
    undefined=(NO_RELEVANT, NOTHING_FOUND),
    references=("beddar2025",),
)
def mean_rank(q: Queries) -> Array:
    ranks = expected_rank(q.first_relevant)
    return np.where((q.relevant_items > 0) & (q.retrieved_relevant == 0), np.inf, ranks)


@_over_queries(
    name="R-precision",
    formula=r"\frac{1}{|Q|} \sum_q \frac{\#\{\text{relevant in the first } R_q\}}{R_q}",
    sentence="Precision at the number of relevant items, mean over the queries that have relevant items.",
    elsewhere={"trec_eval": "Rprec", "ranx": "r-precision", "torchmetrics": "RetrievalRPrecision"},
    differs=_DIFFERS,
    references=("manning2008",),
)
def r_precision(q: Queries) -> Array:
    inside = q.rank <= np.repeat(q.relevant_items, q.sizes)
    return ratio(q.sums(q.expected_relevant * inside), q.relevant_items)


@_over_queries(
    name="mean area under the ROC curve of queries",
    formula=r"\frac{1}{|Q|} \sum_q P_q(s^+ > s^-) + \tfrac{1}{2} P_q(s^+ = s^-)",
    sentence=(
        "Chance that a relevant item is placed above an irrelevant one of its query, mean over the queries that have both."
    ),
    aliases=("pairwise_accuracy",),
    elsewhere={"torchmetrics": "RetrievalAUROC"},
    differs={"torchmetrics": "counts a query without relevant or without irrelevant items as 0"},
    prevalence=Prevalence.INSENSITIVE,
    undefined=(NO_PAIRS,),
    references=("agarwal2010",),
)
def query_auc(q: Queries) -> Array:
    lost = q.sums(q.relevant * q.irrelevant_above)
    # What was not retrieved stands behind all that was, and is tied.
    missed = q.relevant_items - q.retrieved_relevant
    if missed.any():
        found = q.retrieved_items - q.retrieved_relevant
        lost = lost + missed * 0.5 * (found + q.irrelevant_items)
    return 1.0 - ratio(lost, q.relevant_items * q.irrelevant_items)


@_over_queries(
    name="binary preference",
    symbol="bpref",
    formula=r"\frac{1}{|Q|} \sum_q \frac{1}{R} \sum_{r} \left(1 - \frac{\min(n_r, R)}{\min(R, N)}\right)",
    sentence=(
        "How rarely items that were judged irrelevant are placed above relevant ones, mean over the queries that have "
        "relevant items; items without a judgement are passed over."
    ),
    elsewhere={"trec_eval": "bpref"},
    differs={"trec_eval": f"{COUNTED_AS_ZERO}; {TIES_BY_NAME}"},
    references=("buckley2004",),
    on_request=True,
)
def bpref(q: Queries) -> Array:
    return ratio(expected_preference(q), q.relevant_items)


@_over_queries(
    name="rank-biased precision",
    symbol="RBP",
    formula=r"\frac{1}{|Q|} \sum_q (1 - p) \sum_i rel_i\, p^{i-1}",
    sentence=(
        "Chance that what a reader looks at last is relevant, who goes on to the next item with the probability p each "
        "time; mean over the queries. A list of finite length does not reach 1."
    ),
    aliases=("rbp",),
    elsewhere={"ranx": "rbp", "ir_measures": "RBP"},
    differs={
        "ranx": f"multiplies by the relevance, which may be above 1; {TIES_AS_SORTED}",
        "ir_measures": TIES_BY_NAME,
    },
    ideal=None,
    parameters=(Number("persistence", 0.8, "probability to look at the next item", above=0.0, below=1.0),),
    undefined=(NO_QUERIES,),
    references=("moffat2008",),
    on_request=True,
)
def rank_biased_precision(q: Queries, persistence: float = 0.8) -> Array:
    return q.sums(q.expected_relevant * ((1.0 - persistence) * persistence ** (q.rank - 1.0)))


@_over_queries(
    name="expected reciprocal rank",
    symbol="ERR@k",
    formula=r"\frac{1}{|Q|} \sum_q \sum_{i \le k} \frac{1}{i} R_i \prod_{j < i} (1 - R_j),\ R = \frac{2^{rel} - 1}{2^{g}}",
    sentence=(
        "Mean of 1 / rank at which a reader is satisfied, who goes down the first k items and stops at one with a "
        "probability that rises with its relevance. g is the highest grade of the scale, or of a query that has a higher "
        "one. Mean over the queries."
    ),
    aliases=("err",),
    elsewhere={"gdeval": "err@k", "ir_measures": "ERR"},
    differs={"gdeval": TIES_BY_NAME, "ir_measures": TIES_BY_NAME},
    ideal=None,
    parameters=(
        Number("k", 20.0, "how many places are looked at", minimum=1.0, integral=True, written=True),
        Number("highest", 4.0, "the highest grade of the scale of relevance", above=0.0, maximum=1000.0),
    ),
    undefined=(NO_QUERIES,),
    references=("chapelle2009",),
    on_request=True,
)
def expected_reciprocal_rank(q: Queries, k: float = 20.0, highest: float = 4.0) -> Array:
    scale = np.maximum(np.maximum.reduceat(q.ideal, q.starts), highest)
    satisfied = (np.exp2(q.relevance) - 1.0) / np.exp2(np.repeat(scale, q.sizes))
    return expected_stop(q, satisfied, int(k))


@_over_queries(
    name="judged at k",
    formula=r"\frac{1}{|Q|} \sum_q \frac{\#\{\text{judged in the first } k\}}{\min(k, \#\{\text{retrieved}\})}",
    sentence=(
        "Share of the first k items that were judged, mean over the queries that items were retrieved for: how much the "
        "other values rest on items that nobody judged."
    ),
    elsewhere={"ir_measures": "Judged"},
    differs={"ir_measures": f"counts a query without retrieved items as 0; {TIES_BY_NAME}"},
    prevalence=Prevalence.INSENSITIVE,
    about_sample=True,
    parameters=(_K,),
    undefined=(NOTHING_RETRIEVED,),
    references=("macavaney2022",),
    on_request=True,
)
def judged_at_k(q: Queries, k: float = 10.0) -> Array:
    return ratio(q.sums(q.expected(q.judged), int(k)), np.minimum(q.retrieved_items, k))
