"""Reports of matrices and of the four counts, and their intervals."""

from tests.golden.calls import compute
from tests.golden.data import LETTERS, matrix, of_counts, of_matrix

_FOUR = [[800, 0, 0, 0], [0, 600, 0, 0], [0, 0, 500, 0], [40, 24, 20, 16]]
_TWO = [[42, 8], [5, 45]]
_THREE = matrix(3, 180, 4)
_SMALL = [[12, 3, 0], [2, 9, 1], [0, 0, 7]]
_EXPRESSIONS = [
    "h_mean",
    "f_beta(beta=2)@D",
    "recall@*",
    "gps(recall@*, precision@D)",
    "gps_sd(recall@*)",
    "mean(f1@A, f1@B, h_mean)",
    "gmean(recall@*)",
    "min(recall@*)",
    "max(recall@*)",
    "range(recall@*)",
    "tversky_index(alpha=0.3, beta=0.7)@B",
    "macro_f_beta(beta=2)",
    "micro_f_beta(beta=0.5)",
    "net_benefit(threshold=0.2)@A",
    "weighted_g_mean(weight=0.3)@C",
    "power_mean_recall(r=2)",
    "gini_mean_recall(p=1, q=-1)",
    "lehmer_mean_recall(r=2)",
    "quasi_arithmetic_mean_recall(generator=exp)",
    "weighted_kappa(weights=quadratic)",
    "weighted_alpha(weights=quadratic)",
    "macro_precision(undefined=zero)",
    "h_mean(classes=present)",
    "kappa",
    'recall@"A"',
    "(mean(min(recall@*), max(precision@*)))",
]

MATRICES = [
    compute("two-classes", of_matrix(_TWO)),
    compute("four-classes", of_matrix(_FOUR, labels=["A", "B", "C", "D"]), metrics=_EXPRESSIONS),
    compute("five-classes-level", of_matrix(matrix(5, 400, 2)), level=0.9),
    compute("eight-classes", of_matrix(matrix(8, 900, 3)), intervals="none"),
    compute("twelve-classes", of_matrix(matrix(12, 1500, 5), labels=list(LETTERS)), metrics=["recall@L", "h_mean"]),
    compute("positive-first", of_matrix(_TWO, labels=["ill", "well"], positive="ill"), metrics=["recall", "f1"]),
    compute("predicted-in-rows", of_matrix(_THREE, orientation="predicted_rows", labels=["x", "y", "z"])),
    compute("integer-labels", of_matrix(_THREE, labels=[10, 2, -3]), metrics=["recall@10", 'recall@"-3"']),
    compute("labels-of-any-text", of_matrix(_TWO, labels=["stage IV", 'a "b", (c) @*']), metrics=['f1@"stage IV"']),
    compute("rates", of_matrix([[0.9, 0.1], [0.2, 0.8]], normalized=True), metrics=["h_mean", "mcc"]),
    compute("rates-of-three", of_matrix([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0, 0.25, 0.75]], normalized=True)),
    compute("weights", of_matrix([[10.5, 2.25], [1.75, 20.5]]), metrics=["accuracy", "h_mean"]),
    compute("class-without-samples", of_matrix([[5, 1, 0], [0, 0, 0], [2, 1, 6]]), metrics=["h_mean(classes=present)"]),
    compute("class-never-predicted", of_matrix([[9, 0, 1], [4, 0, 2], [1, 0, 8]]), metrics=["macro_f1", "gps_upm"]),
    compute("one-class-only", of_matrix([[7, 3], [0, 0]])),
    compute("constant-predictions", of_matrix([[90, 0], [10, 0]]), interpretation=True),
    compute("perfect", of_matrix([[30, 0, 0], [0, 20, 0], [0, 0, 50]]), interpretation=True),
    compute("all-wrong", of_matrix([[0, 12], [9, 0]]), interpretation=True),
    compute("one-sample", of_matrix([[0, 1], [0, 0]])),
    compute("very-rare-class", of_matrix([[9_990, 4], [3, 3]]), metrics=["accuracy", "min(recall@*)"]),
    compute("ignored-class", of_matrix(_THREE, labels=["x", "y", "void"], ignore=["void"]), metrics=["recall@*"]),
    compute("ignored-column-too", of_matrix([[9, 1, 0], [2, 8, 0], [3, 1, 4]], ignore=[2])),
    compute(
        "decisions",
        of_matrix([[70, 18, 2], [1, 3, 6]], labels=["well", "ill"], decisions=["wait", "test", "treat"]),
        costs={"matrix": [[0, 2, 10], [50, 7, 1]]},
        intervals="all",
        seed=1,
        draws=300,
    ),
    compute(
        "decisions-without-costs",
        of_matrix([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]], decisions=["keep", "refer"], normalized=True),
    ),
    compute(
        "decisions-as-metrics",
        of_matrix([[70, 18, 2], [1, 3, 6]], labels=["well", "ill"], decisions=["wait", "test", "treat"]),
        metrics=["decision_share(decision=test)", "decision_share_of_class(decision=treat)@*", "decision_share"],
    ),
    compute(
        "shares-of-decisions",
        of_matrix([[70, 18, 0], [1, 3, 0]], labels=["well", "ill"], decisions=["wait", "test", "treat"]),
        metrics=["decision_share_of_class(decision=test)@ill", "class_share_of_decision(decision=treat)@ill"],
        intervals="all",
        seed=1,
        draws=300,
    ),
    compute("large-counts", of_matrix([[400_000_000_000, 7], [123_456_789, 900_000_000_000]])),
    compute("interpretation", of_matrix(_THREE), interpretation=True, level=0.99),
    compute("counts", of_counts(40, 10, 5, 45)),
    compute("counts-with-names", of_counts(40, 10, 5, 45, negative="healthy", positive="ill"), metrics=["recall@ill"]),
    compute("counts-without-positives", of_counts(0, 0, 5, 45)),
    compute("counts-without-predicted-positives", of_counts(0, 12, 0, 88), interpretation=True),
    compute("counts-as-weights", of_counts(4.5, 1.5, 0.5, 7.25)),
    compute("expressions-of-two", of_matrix(_TWO), metrics=["recall", "f1", "mean(f1@1, f1@0, h_mean)", "lift"]),
    compute(
        "ordered-classes", of_matrix([[20, 6, 1, 0], [5, 18, 7, 1], [0, 6, 25, 4], [0, 1, 3, 30]], labels=[1, 2, 3, 4])
    ),
]


INTERVALS = [
    compute("posterior", of_matrix(_THREE), intervals="all", seed=1, draws=500),
    compute("posterior-seed-from-content", of_matrix(_SMALL), intervals="all", draws=500),
    compute("posterior-sampled", of_matrix(_THREE), intervals="all", seed=1, draws=500, prevalence_design="sampled"),
    compute("posterior-uniform", of_matrix(_SMALL), intervals="all", seed=2, draws=500, prior="uniform"),
    compute("posterior-jeffreys", of_matrix(_SMALL), intervals="all", seed=2, draws=500, prior="jeffreys_recall"),
    compute(
        "posterior-custom",
        of_matrix(_SMALL),
        intervals="all",
        seed=3,
        draws=500,
        prior="custom",
        pseudo_counts=[[1, 0.5, 0.5], [0.25, 2, 0.25], [0, 0, 1]],
    ),
    compute("posterior-of-two", of_matrix(_TWO), intervals="all", seed=4, level=0.8, metrics=["f1", "mean(f1@*, mcc)"]),
    compute("posterior-of-counts", of_counts(18, 2, 7, 33), intervals="all", seed=5, draws=1000),
    compute("posterior-edge", of_matrix([[10, 0], [0, 12]]), intervals="all", seed=6, draws=500),
    compute(
        "posterior-without-samples", of_matrix([[5, 1, 0], [0, 0, 0], [2, 1, 6]]), intervals="all", seed=7, draws=300
    ),
    compute("posterior-of-ten", of_matrix(matrix(10, 250, 6)), intervals="all", seed=8, draws=200),
    compute("lower-limits", of_matrix(_THREE), alternative="greater"),
    compute("clopper-pearson", of_matrix(_THREE), proportion_interval="clopper_pearson"),
    compute("wald", of_matrix(_TWO), intervals="all", proportion_interval="wald", draws=200, seed=1),
    compute("delta", of_matrix(_THREE), intervals="all", interval_method="delta", seed=1, metrics=["gps(recall@*)"]),
    compute("delta-sampled", of_matrix(_THREE), intervals="all", interval_method="delta", prevalence_design="sampled"),
    compute("delta-of-six", of_matrix(matrix(6, 500, 9)), intervals="all", interval_method="delta", level=0.9),
    compute("bootstrap", of_matrix(_THREE), intervals="all", interval_method="bootstrap", seed=1, draws=400),
    compute(
        "bootstrap-sampled",
        of_matrix(_SMALL),
        intervals="all",
        interval_method="bootstrap",
        seed=1,
        draws=400,
        prevalence_design="sampled",
        metrics=["f1@*", "range(recall@*)"],
    ),
    compute("bca", of_matrix(_THREE), intervals="all", interval_method="bca", seed=1, draws=400),
    compute(
        "bca-sampled", of_matrix(_TWO), intervals="all", interval_method="bca", prevalence_design="sampled", draws=300
    ),
    compute("none", of_matrix(_THREE), intervals="none", metrics=["recall@*"]),
    compute("headline-level", of_matrix(_SMALL), level=0.5),
]
