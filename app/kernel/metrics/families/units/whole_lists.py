"""What is read off whole rankings, as means over the queries; tied items count with their mean over all orders."""

from functools import partial

import numpy as np

from app.kernel.metrics.card import Inputs, Orientation, Prevalence
from app.kernel.metrics.conditions import NO_PAIRS, NO_RELEVANT
from app.kernel.metrics.families.units.at_cutoffs import COUNTED_AS_ZERO, TIES_AS_SORTED, TIES_BY_NAME
from app.kernel.metrics.over_units import over_units
from app.kernel.numerics.arrays import Array, ratio
from app.kernel.units.queries import Queries
from app.kernel.units.ties import expected_rank, expected_reciprocal

_over_queries = partial(over_units, inputs=Inputs.QUERIES, prevalence=Prevalence.SENSITIVE)


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
        "trec_eval": f"{COUNTED_AS_ZERO}; {TIES_BY_NAME}",
        "ranx": f"{COUNTED_AS_ZERO}; {TIES_AS_SORTED}",
        "torchmetrics": f"leaves out items with scores of 0 and below; {COUNTED_AS_ZERO}; {TIES_AS_SORTED}",
        "sklearn": "gives tied items the worst place among them, and 1 to a sample without labels",
    },
    undefined=(NO_RELEVANT,),
    references=("manning2008", "mcsherry2008"),
)
def mean_average_precision(q: Queries) -> Array:
    return ratio(q.sums(q.expected_precision), q.relevant_items)


@_over_queries(
    headline=True,
    name="mean reciprocal rank",
    symbol="MRR",
    formula=r"\frac{1}{|Q|} \sum_q \frac{1}{k_q}",
    sentence="Mean over the queries that have relevant items of 1 / rank of the first of them.",
    aliases=("mrr",),
    elsewhere={"trec_eval": "recip_rank", "ranx": "mrr", "torchmetrics": "RetrievalMRR"},
    differs={
        "trec_eval": f"{COUNTED_AS_ZERO}; {TIES_BY_NAME}",
        "ranx": f"{COUNTED_AS_ZERO}; {TIES_AS_SORTED}",
        "torchmetrics": f"{COUNTED_AS_ZERO}; {TIES_AS_SORTED}",
    },
    undefined=(NO_RELEVANT,),
    references=("beddar2025", "voorhees1999", "mcsherry2008"),
)
def mean_reciprocal_rank(q: Queries) -> Array:
    return expected_reciprocal(q.first_relevant)


@_over_queries(
    name="mean rank",
    symbol="MR",
    formula=r"\frac{1}{|Q|} \sum_q k_q",
    sentence="Mean over the queries that have relevant items of the rank of the first of them.",
    elsewhere={"pykeen": "arithmetic_mean_rank"},
    differs={"pykeen": "takes every relevant item as a query of its own"},
    orientation=Orientation.LOWER,
    range=(1.0, None),
    ideal=1.0,
    undefined=(NO_RELEVANT,),
    references=("beddar2025",),
)
def mean_rank(q: Queries) -> Array:
    return expected_rank(q.first_relevant)


@_over_queries(
    name="R-precision",
    formula=r"\frac{1}{|Q|} \sum_q \frac{\#\{\text{relevant in the first } R_q\}}{R_q}",
    sentence="Precision at the number of relevant items, mean over the queries that have relevant items.",
    elsewhere={"trec_eval": "Rprec", "ranx": "r-precision", "torchmetrics": "RetrievalRPrecision"},
    differs={
        "trec_eval": f"{COUNTED_AS_ZERO}; {TIES_BY_NAME}",
        "ranx": f"{COUNTED_AS_ZERO}; {TIES_AS_SORTED}",
        "torchmetrics": f"{COUNTED_AS_ZERO}; {TIES_AS_SORTED}",
    },
    undefined=(NO_RELEVANT,),
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
    return 1.0 - ratio(lost, q.relevant_items * q.irrelevant_items)
