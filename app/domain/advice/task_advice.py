"""Metrics of labels, clusterings, rankings and sets as they are advised; see ``metric_advice`` for those of classes.

The survey is Beddar-Wiesing et al. (2025): sections 3 and 4 on clusterings and rankings, 5 on regions and answers.
"""

from typing import Final

from app.domain.advice.decision_tree import Advice, Alternative, Source
from app.kernel.metrics.card import Inputs

CLUSTERS: Final = Source("beddar2025", "section 3")
RANKINGS: Final = Source("beddar2025", "section 4")
DOMAINS: Final = Source("beddar2025", "section 5")
LABELS: Final = Source("tsoumakas2010", "section 7")
WEAK_RECALLS: Final = Source("aguilar2025", "section 6")

# Clusterings.

SILHOUETTE: Final = Advice(
    metric="silhouette",
    reason="How much nearer a sample is to its own cluster than to the next, without known classes.",
    source=CLUSTERS,
    inputs=Inputs.FEATURES,
    condition="Clusters that are round and of like density; others look worse than they are.",
    alternatives=(
        Alternative("davies_bouldin", "from centroids alone, for many samples: small is good"),
        Alternative("calinski_harabasz", "variance between clusters over variance within them"),
    ),
)
ADJUSTED_RAND: Final = Advice(
    metric="adjusted_rand",
    reason="Share of the pairs of samples that are treated alike, with what chance reaches taken off.",
    source=CLUSTERS,
    inputs=Inputs.MATRIX,
    alternatives=(
        Alternative("adjusted_mutual_information", "where small clusters are to count for more (Vinh et al. 2010)"),
    ),
    disagreement=(
        "The survey gives -1 as total disagreement; the lowest value depends on the sizes, and is never below -0.5."
    ),
)
PURITY: Final = Advice(
    metric="purity",
    reason="Share of the samples that are of the largest class of their cluster.",
    source=CLUSTERS,
    inputs=Inputs.CONTINGENCY,
    condition="Between clusterings with the same number of clusters: with more of them it rises by itself.",
    alternatives=(Alternative("v_measure", "which also asks that a class is in one cluster"),),
)
RAND: Final = Advice(
    metric="rand_index",
    reason="Share of the pairs of samples on which classes and clusters agree.",
    source=CLUSTERS,
    inputs=Inputs.CONTINGENCY,
    condition="Classes of about one size: else it is near 1 for poor clusterings too.",
    alternatives=(Alternative("adjusted_rand", "0 for what chance reaches"),),
)
PAIR_FM: Final = Advice(
    metric="pair_fowlkes_mallows",
    reason="Geometric mean of precision and recall of the pairs that are together.",
    source=CLUSTERS,
    inputs=Inputs.CONTINGENCY,
    condition="Clusters of about one size: small ones that are wrong hardly change it.",
)

# Rankings.

PRECISION_AT_K: Final = Advice(
    metric="precision_at_k",
    reason="Share of the first k that is relevant: irrelevant items annoy.",
    source=RANKINGS,
    inputs=Inputs.QUERIES,
    condition="Queries with at least k relevant items: with fewer it cannot reach 1.",
    alternatives=(Alternative("r_precision", "k is the number of relevant items of each query"),),
)
AVERAGE_PRECISION: Final = Advice(
    metric="average_precision_at_k",
    reason="Precision at all places up to k: no single k has to be chosen.",
    source=RANKINGS,
    inputs=Inputs.QUERIES,
    alternatives=(Alternative("mean_average_precision", "of whole lists"),),
    disagreement=(
        "The survey's eq. 33 averages over all places (divide=places); what is called average precision elsewhere "
        "counts those of relevant items alone, which is the default here."
    ),
)
RECALL_AT_K: Final = Advice(
    metric="recall_at_k",
    reason="Share of the relevant items that is among the first k: none should be missed.",
    source=RANKINGS,
    inputs=Inputs.QUERIES,
    condition="A k far below the number of items: it is 1 where all of them are taken.",
    alternatives=(Alternative("hit_rate_at_k", "one relevant item is enough"),),
)
RECIPROCAL_RANK: Final = Advice(
    metric="mean_reciprocal_rank",
    reason="How early the first relevant item comes; nothing behind it counts.",
    source=RANKINGS,
    inputs=Inputs.QUERIES,
    alternatives=(Alternative("mean_rank", "in places, where single late ones may weigh much"),),
)
NDCG: Final = Advice(
    metric="ndcg_at_k",
    reason="Gains of all relevant items, the earlier the more, over those of the best order.",
    source=RANKINGS,
    inputs=Inputs.QUERIES,
    alternatives=(
        Alternative("dcg_at_k", "the same without the best order, for one set of queries alone"),
        Alternative("mean_average_precision", "where items are relevant or not, without grades"),
    ),
)

# Labels.

LABEL_H: Final = Advice(
    metric="h_mean",
    reason="Harmonic mean of the recalls of the labels: one that is mostly missed pulls it down, however rare.",
    source=WEAK_RECALLS,
    alternatives=(Alternative("balanced_accuracy", "their plain mean"),),
)
LABEL_MACRO_F1: Final = Advice(
    metric="macro_f1",
    reason="Mean F1 of the labels: rare labels count as much as others.",
    source=LABELS,
    alternatives=(Alternative("micro_f_beta", "all answers together, so that frequent labels count most"),),
)
SAMPLES_F1: Final = Advice(
    metric="samples_f1",
    reason="F1 of the labels of each sample, averaged: how right the answer to one sample is.",
    source=LABELS,
    inputs=Inputs.LABELS,
    alternatives=(Alternative("samples_jaccard", "the same with labels on both sides over labels on either"),),
)
SUBSET_ACCURACY: Final = Advice(
    metric="subset_accuracy",
    reason="Share of the samples of which all labels are right and none is missing.",
    source=LABELS,
    inputs=Inputs.LABELS,
    alternatives=(Alternative("hamming_loss", "share of single answers that are wrong: it hides rare labels"),),
)
LABEL_RANKING: Final = Advice(
    metric="label_ranking_average_precision",
    reason="Whether the labels of a sample have higher scores than all others, whatever the thresholds.",
    source=LABELS,
    inputs=Inputs.LABEL_SCORES,
    alternatives=(Alternative("label_ranking_loss", "share of pairs in the wrong order"),),
)

# Regions and answers.

ITEM_JACCARD: Final = Advice(
    metric="samples_jaccard",
    reason="Intersection over union of each item, averaged: a small region counts as much as a large one.",
    source=DOMAINS,
    inputs=Inputs.LABELS,
    alternatives=(Alternative("samples_f1", "Dice of regions, F1 of the tokens of answers"),),
)
POOLED_JACCARD: Final = Advice(
    metric="pooled_jaccard",
    reason="Intersection over union of all pixels together: large regions count most.",
    source=DOMAINS,
    inputs=Inputs.OVERLAPS,
    alternatives=(Alternative("pooled_f1", "Dice of all pixels together"),),
)
MEAN_IOU: Final = Advice(
    metric="mean_class_jaccard",
    reason="Mean over the classes of the intersection over union: rare classes count as much as others.",
    source=DOMAINS,
    inputs=Inputs.CLASS_OVERLAPS,
    condition="Items with a class.",
)
EXACT_MATCH: Final = Advice(
    metric="subset_accuracy",
    reason="Share of the answers that are exactly the right one (exact match).",
    source=DOMAINS,
    inputs=Inputs.LABELS,
    alternatives=(Alternative("samples_f1", "F1 of the tokens, which gives credit to answers that are nearly right"),),
)
