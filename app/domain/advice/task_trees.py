"""Decision trees of tasks other than classification.

Those of clusterings and rankings are the survey's (Beddar-Wiesing et al. 2025, sections 3 and 4), which prints them as
pictures and says in its discussions what they hold.
"""

from collections.abc import Mapping
from typing import Final

from app.domain.advice import task_advice as m
from app.domain.advice.decision_tree import Branch, Fork, Leaf, Node, Source
from app.kernel.metrics.card import Task

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


CLUSTERING_TREE: Final = _yes_no(
    "known_classes",
    "Are the classes of the samples known?",
    m.CLUSTERS,
    no=("Only the structure of the clusters can be judged.", Leaf((m.SILHOUETTE,), (NO_TRUTH,))),
    yes=(
        "Clusters can be held against classes.",
        _yes_no(
            "chance_corrected",
            "Should guessing score 0?",
            m.CLUSTERS,
            yes=("Agreement that chance reaches is taken off.", Leaf((m.ADJUSTED_RAND,))),
            no=(
                "The plain value is easier to read.",
                _yes_no(
                    "same_number_of_clusters",
                    "Have all clusterings that are compared the same number of clusters?",
                    m.CLUSTERS,
                    yes=(
                        "None of them gains by having more of them.",
                        _yes_no(
                            "balanced",
                            "Are the classes about equally frequent?",
                            m.CLUSTERS,
                            yes=("Pairs of all classes count alike.", Leaf((m.PURITY, m.RAND, m.PAIR_FM))),
                            no=(
                                "Pairs within the large classes, and pairs that are apart, outnumber all others.",
                                Leaf((m.PURITY, m.ADJUSTED_RAND)),
                            ),
                        ),
                    ),
                    no=(
                        "What rises with the number of clusters does not compare them.",
                        _yes_no(
                            "balanced",
                            "Are the classes about equally frequent?",
                            m.CLUSTERS,
                            yes=(
                                "Pairs of all classes count alike.",
                                Leaf((m.PAIR_FM, m.ADJUSTED_RAND), (MORE_CLUSTERS,)),
                            ),
                            no=(
                                "Pairs within the large classes, and pairs that are apart, outnumber all others.",
                                Leaf((m.ADJUSTED_RAND,), (MORE_CLUSTERS,)),
                            ),
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
    m.RANKINGS,
    (
        Branch(
            ("type1",),
            "Irrelevant items among the first ones annoy.",
            _yes_no(
                "fixed_cutoff",
                "Is it known how many items are looked at?",
                m.RANKINGS,
                yes=("That many are judged.", Leaf((m.PRECISION_AT_K,), (K_IS_CHOSEN,))),
                no=("Any single k would be a guess.", Leaf((m.AVERAGE_PRECISION,))),
            ),
        ),
        Branch(("type2",), "No relevant item should be missed.", Leaf((m.RECALL_AT_K,), (K_IS_CHOSEN,))),
        Branch(("first",), "One relevant item is enough, as early as possible.", Leaf((m.RECIPROCAL_RANK,))),
        Branch(
            ("order",),
            "All relevant items count, the earlier and the more relevant the more.",
            Leaf((m.NDCG,)),
        ),
    ),
)

MULTILABEL_TREE: Final = Fork(
    "judged",
    "What is to be right?",
    m.LABELS,
    (
        Branch(
            ("labels",),
            "Every label is a question of its own, and rare ones count too.",
            Leaf((m.LABEL_H, m.LABEL_MACRO_F1), (LABEL_BY_LABEL,)),
        ),
        Branch(
            ("samples",),
            "What is said of one sample is right to a part.",
            Leaf((m.SAMPLES_F1, m.LABEL_RANKING), (LABEL_BY_LABEL,)),
        ),
        Branch(("whole_sets",), "A sample is right with all of its labels only.", Leaf((m.SUBSET_ACCURACY,))),
    ),
)

SETS_TREE: Final = Fork(
    "judged",
    "What is to be right?",
    m.DOMAINS,
    (
        Branch(("items",), "Every region or answer counts alike.", Leaf((m.ITEM_JACCARD,), (NO_LANGUAGE,))),
        Branch(("pixels",), "Every pixel or token counts alike.", Leaf((m.POOLED_JACCARD,))),
        Branch(("classes",), "Every class of items counts alike.", Leaf((m.MEAN_IOU,))),
        Branch(("whole_sets",), "An answer is right as a whole or not at all.", Leaf((m.EXACT_MATCH,), (NO_LANGUAGE,))),
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
