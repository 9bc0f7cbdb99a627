"""Decision trees for tasks other than classification, with what each metric is good for.

Trees of clusterings and rankings are the survey's (Beddar-Wiesing et al. 2025, sections 3 and 4), which prints them as
pictures and says in its discussions what they hold; section 5 is on regions and answers.
"""

from collections.abc import Mapping
from typing import Final

from app.domain.advice.decision_tree import Advice, Alternative, Branch, Fork, Leaf, Node, Source
from app.kernel.metrics.card import Inputs, Task

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


NO_TRUTH: Final = (
    "Measures of shape say how well the clusters are apart, not whether they are the right ones: what is right only "
    "known classes tell."
)
MORE_CLUSTERS: Final = "With more clusters purity rises by itself, up to 1 for a cluster of every sample."
K_IS_CHOSEN: Final = "Report the k with the value, and the same k for all models that are compared."
LABEL_BY_LABEL: Final = "Read recall and precision of every label beside a mean over them: means hide single labels."
NO_LANGUAGE: Final = (
    "BLEU, ROUGE and METEOR need a tokeniser or a language model and are not computed here; F1 of tokens takes the "
    "tokens that are given."
)


def _yes_no(about: str, text: str, source: Source, *, yes: tuple[str, Node], no: tuple[str, Node]) -> Fork:
    return Fork(about, text, source, (Branch((True,), *yes), Branch((False,), *no)))


def _balanced(*, yes: Leaf, no: Leaf) -> Fork:
    apart = "Pairs within the large classes, and pairs that are apart, outnumber all others."
    return _yes_no(
        "balanced",
        "Are the classes about equally frequent?",
        CLUSTERS,
        yes=("Pairs of all classes count alike.", yes),
        no=(apart, no),
    )


CLUSTERING_TREE: Final = _yes_no(
    "known_classes",
    "Are the classes of the samples known?",
    CLUSTERS,
    no=("Only the structure of the clusters can be judged.", Leaf((SILHOUETTE,), (NO_TRUTH,))),
    yes=(
        "Clusters can be held against classes.",
        _yes_no(
            "chance_corrected",
            "Should guessing score 0?",
            CLUSTERS,
            yes=("Agreement that chance reaches is taken off.", Leaf((ADJUSTED_RAND,))),
            no=(
                "The plain value is easier to read.",
                _yes_no(
                    "same_number_of_clusters",
                    "Have all clusterings that are compared the same number of clusters?",
                    CLUSTERS,
                    yes=(
                        "None of them gains by having more of them.",
                        _balanced(yes=Leaf((PURITY, RAND, PAIR_FM)), no=Leaf((PURITY, ADJUSTED_RAND))),
                    ),
                    no=(
                        "What rises with the number of clusters does not compare them.",
                        _balanced(
                            yes=Leaf((PAIR_FM, ADJUSTED_RAND), (MORE_CLUSTERS,)),
                            no=Leaf((ADJUSTED_RAND,), (MORE_CLUSTERS,)),
                        ),
                    ),
                ),
            ),
        ),
    ),
)

RANKING_TREE: Final = Fork(
    "error_priority",
    "What matters most in the order?",
    RANKINGS,
    (
        Branch(
            ("type1",),
            "Irrelevant items among the first ones annoy.",
            _yes_no(
                "fixed_cutoff",
                "Is it known how many items are looked at?",
                RANKINGS,
                yes=("That many are judged.", Leaf((PRECISION_AT_K,), (K_IS_CHOSEN,))),
                no=("Any single k would be a guess.", Leaf((AVERAGE_PRECISION,))),
            ),
        ),
        Branch(("type2",), "No relevant item should be missed.", Leaf((RECALL_AT_K,), (K_IS_CHOSEN,))),
        Branch(("first",), "One relevant item is enough, as early as possible.", Leaf((RECIPROCAL_RANK,))),
        Branch(
            ("order",),
            "All relevant items count, the earlier and the more relevant the more.",
            Leaf((NDCG,)),
        ),
    ),
)

MULTILABEL_TREE: Final = Fork(
    "judged",
    "What is to be right?",
    LABELS,
    (
        Branch(
            ("labels",),
            "Every label is a question of its own, and rare ones count too.",
            Leaf((LABEL_H, LABEL_MACRO_F1), (LABEL_BY_LABEL,)),
        ),
        Branch(
            ("samples",),
            "What is said of one sample is right to a part.",
            Leaf((SAMPLES_F1, LABEL_RANKING), (LABEL_BY_LABEL,)),
        ),
        Branch(("whole_sets",), "A sample is right with all of its labels only.", Leaf((SUBSET_ACCURACY,))),
    ),
)

SETS_TREE: Final = Fork(
    "judged",
    "What is to be right?",
    DOMAINS,
    (
        Branch(("items",), "Every region or answer counts alike.", Leaf((ITEM_JACCARD,), (NO_LANGUAGE,))),
        Branch(("pixels",), "Every pixel or token counts alike.", Leaf((POOLED_JACCARD,))),
        Branch(("classes",), "Every class of items counts alike.", Leaf((MEAN_IOU,))),
        Branch(("whole_sets",), "An answer is right as a whole or not at all.", Leaf((EXACT_MATCH,), (NO_LANGUAGE,))),
    ),
)

TASK_TREES: Final[Mapping[Task, Node]] = {
    Task.MULTILABEL: MULTILABEL_TREE,
    Task.CLUSTERING: CLUSTERING_TREE,
    Task.RANKING: RANKING_TREE,
    Task.SETS: SETS_TREE,
}
# What is assumed where a question is not answered; None has to be answered.
ASSUMED: Final[Mapping[Task, Mapping[str, object]]] = {
    Task.MULTILABEL: {"judged": "labels"},
    Task.CLUSTERING: {
        "known_classes": None,
        "chance_corrected": False,
        "same_number_of_clusters": False,
        "balanced": False,
    },
    Task.RANKING: {"error_priority": "order", "fixed_cutoff": True},
    Task.SETS: {"judged": "items"},
}
