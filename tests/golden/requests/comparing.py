"""Comparisons of runs, models across datasets, and leaderboards."""

from typing import Any

from tests.golden.calls import Call, delete, get, keep, post
from tests.golden.data import (
    groups,
    labelled,
    letters,
    matrix,
    of_folds,
    of_matrix,
    of_rows,
    of_scores,
    probabilities,
    scored,
    scores,
    truth,
    weights,
)

_NOWHERE = "01900000-0000-7000-8000-00000000000{}".format
_SHARES = (5, 3, 2)
_BINARY = truth(160, (3, 2))


def _compare(name: str, runs: str, metrics: list[str] | None = None, **members: Any) -> Call:
    """Runs by the names of the requests that kept them."""
    body = {"evaluations": [f"${run}" for run in runs.split()], "seed": 1, "draws": 500, **members}
    return post(name, "/v1/comparisons", body if metrics is None else {**body, "metrics": metrics})


def _ids(n: int, first: int = 0) -> list[int]:
    return list(range(first, first + n))


_ALL = ["h_mean", "accuracy", "recall@*", "min(recall@*)", "macro_f1", "mcc", "error_rate", "cohen_kappa"]
COMPARISONS = [
    keep("a", labelled(200, _SHARES, 0.8, 1, sample_ids=_ids(200)), "a"),
    keep("a-again", labelled(200, _SHARES, 0.8, 1, sample_ids=_ids(200)), "a-again"),
    keep("b", labelled(200, _SHARES, 0.74, 2, sample_ids=_ids(200)), "b"),
    keep("c", labelled(200, _SHARES, 0.6, 3, sample_ids=_ids(200), labels=["C", "A", "B"]), "c"),
    keep("later", labelled(200, _SHARES, 0.7, 4, sample_ids=_ids(200, 40)), "later"),
    keep("others", labelled(150, _SHARES, 0.7, 5, sample_ids=_ids(150, 900)), "others"),
    keep("no-ids", labelled(200, _SHARES, 0.8, 6), "no-ids"),
    keep("no-ids-too", labelled(200, _SHARES, 0.7, 7), "no-ids-too"),
    keep("mix-1", of_matrix([[90, 10], [5, 45]]), "mix-1", "one"),
    keep("mix-2", of_matrix([[30, 6], [20, 120]]), "mix-2", "two"),
    keep("mix-3", of_matrix([[80, 20], [10, 90]]), "mix-3", "three"),
    keep("lacking", of_matrix([[50, 10], [0, 0]]), "lacking", "four"),
    keep("weighted", of_matrix([[50.5, 10], [3, 20]]), "weighted"),
    keep("rates", of_matrix([[0.9, 0.1], [0.2, 0.8]], normalized=True), "rates"),
    keep("folds-1", of_folds(*(of_matrix(matrix(2, 80, s, 0.8, (1, 1))) for s in (1, 2, 3, 4))), "folds-1"),
    keep("folds-2", of_folds(*(of_matrix(matrix(2, 80, s, 0.7, (1, 1))) for s in (5, 6, 7, 8))), "folds-2"),
    keep("g-1", labelled(240, _SHARES, 0.8, 8, sample_ids=_ids(240), group_ids=groups(240)), "g-1", "patients"),
    keep("g-2", labelled(240, _SHARES, 0.7, 9, sample_ids=_ids(240)), "g-2", "patients"),
    keep("g-3", labelled(240, _SHARES, 0.75, 10, sample_ids=_ids(240), group_ids=groups(240)), "g-3", "patients"),
    _compare("paired", "a b", _ALL),
    _compare("paired-default", "a b"),
    _compare("paired-seed-from-request", "a b", ["mcc"], seed=None),
    _compare("paired-swapped", "b a", ["accuracy", "h_mean"], rope=0, level=0.9),
    _compare("paired-with-itself-renamed", "a a-again", ["accuracy", "mcc"]),
    _compare("asked-as-unpaired", "a b", ["accuracy", "h_mean", "recall@*"], paired="false"),
    _compare("asked-as-paired", "a b", ["accuracy"], paired=True),
    _compare("other-order-of-labels", "a c", ["recall@*", "precision@B"]),
    _compare("partly-matched", "a later", ["accuracy", "macro_f1"], minimum_matched=0.5),
    _compare("too-little-matched", "a later", ["accuracy"]),
    _compare("pairing-refused", "a others", ["accuracy"], paired="true"),
    _compare("nothing-in-common", "a others", ["accuracy", "h_mean", "recall@A"]),
    _compare("one-test-set", "no-ids no-ids-too", ["accuracy", "recall@*", "macro_f1", "h_mean"]),
    _compare("class-mixes", "mix-1 mix-2", ["accuracy", "h_mean", "precision@1", "mcc"]),
    _compare("class-lacking", "mix-1 lacking", ["accuracy", "h_mean", "recall@0"]),
    _compare("three", "a b c", ["accuracy", "h_mean", "macro_f1"]),
    _compare("three-with-baseline", "a b c", ["accuracy", "recall@*"], baseline="$c", multiplicity="bonferroni"),
    _compare("three-independent", "mix-1 mix-2 mix-3", ["h_mean", "accuracy"], multiplicity="hochberg"),
    _compare("benjamini-hochberg", "a b c", ["mcc"], multiplicity="benjamini_hochberg"),
    _compare("benjamini-yekutieli", "a b c", ["recall@*"], multiplicity="benjamini_yekutieli"),
    _compare("unadjusted", "a b c", ["gps_upm"], multiplicity="none"),
    _compare(
        "expressions", "a b", ["gps(recall@*, precision@C)", "range(recall@*)", "f_beta(beta=2)@*", "gmean(f1@*)"]
    ),
    _compare("nearest-is-better", "mix-1 mix-3", ["likelihood_ratio_positive@1", "diagnostic_odds_ratio", "lift@1"]),
    _compare("folds", "folds-1 folds-2", ["accuracy", "error_rate"], rope=0.02),
    _compare("grouped", "g-1 g-3", ["accuracy", "h_mean", "recall@*"]),
    _compare("grouped-on-one-side", "g-1 g-2", ["macro_f1"]),
    _compare("grouped-three", "g-1 g-2 g-3", ["accuracy", "mcc"], baseline="$g-2"),
    _compare("grouped-unpaired", "g-1 g-3", ["accuracy"], paired="false"),
    get("read", "/v1/comparisons/$three"),
    _compare("weights-refused", "mix-1 weighted", ["accuracy"]),
    _compare("rates-refused", "mix-1 rates", ["accuracy"]),
    _compare("labels-refused", "a mix-1", ["accuracy"]),
    _compare("not-comparable", "a b", ["support@A"]),
    _compare("unknown-metric", "a b", ["accuracy", "accuarcy"]),
    _compare("unknown-label", "a b", ["recall@horse"]),
    _compare("unknown-run", "a", evaluations=["$a", _NOWHERE(1)]),
    _compare("one-run", "a"),
    _compare("same-run-twice", "a a"),
    _compare("foreign-baseline", "a b", baseline=_NOWHERE(1)),
    _compare("bad-members", "a b", level=1, rope=-1, paired="maybe", colour="red"),
    get("read-nothing", f"/v1/comparisons/{_NOWHERE(2)}"),
    get("of-a-run", "/v1/comparisons", evaluation="$three:/evaluations/0/id", fields="id,kind"),
    delete("remove", "/v1/comparisons/$three"),
    get("read-removed", "/v1/comparisons/$three"),
    get("list", "/v1/comparisons", limit=3),
]


def _soft(seed: int, skill: float = 0.8, **members: Any) -> dict[str, Any]:
    return scored(160, _SHARES, skill, seed, **{"sample_ids": _ids(160), **members})


def _two(seed: int, skill: float, **members: Any) -> dict[str, Any]:
    return scored(160, (3, 2), skill, seed, **{"sample_ids": _ids(160), **members})


_OTHER_MIX = truth(120, (1, 4))
SCORED_COMPARISONS = [
    keep("a", _soft(101), "a"),
    keep("b", _soft(102, 0.6), "b"),
    keep("c", _soft(103, 0.4), "c"),
    keep("two-a", _two(201, 0.7), "two-a", "two"),
    keep("two-b", _two(202, 0.4), "two-b", "two"),
    keep("two-same", _two(201, 0.7), "two-same", "two"),
    keep("scores-a", of_scores(letters(_BINARY), scores(_BINARY, 1), sample_ids=_ids(160), threshold=0), "s-a", "two"),
    keep(
        "scores-b",
        of_scores(letters(_BINARY), scores(_BINARY, 2, 0.6), sample_ids=_ids(160), threshold=0),
        "s-b",
        "two",
    ),
    keep("no-ids-a", scored(160, (3, 2), 0.7, 301), "no-ids-a", "two"),
    keep("no-ids-b", scored(160, (3, 2), 0.5, 302), "no-ids-b", "two"),
    keep(
        "elsewhere",
        of_rows(letters(_OTHER_MIX), probabilities(_OTHER_MIX, 203, 0.6), labels=["A", "B"]),
        "elsewhere",
        "three",
    ),
    keep("shifted", _two(204, 0.6, sample_ids=_ids(160, 30)), "shifted", "four"),
    keep("grouped-a", _two(205, 0.7, group_ids=groups(160)), "grouped-a", "patients"),
    keep("grouped-b", _two(206, 0.6, group_ids=groups(160)), "grouped-b", "patients"),
    keep("folds-a", of_folds(*(scored(60, (1, 1), 0.7, s) for s in (1, 2, 3))), "folds-a", "folds"),
    keep("folds-b", of_folds(*(scored(60, (1, 1), 0.5, s) for s in (4, 5, 6))), "folds-b", "folds"),
    keep("matrix", of_matrix([[90, 10], [5, 55]], labels=["A", "B"]), "matrix", "two"),
    keep("forgotten", _two(207, 0.6), "forgotten", "two", options={"retain": "none"}),
    keep("weighted", _two(208, 0.6, sample_weight=weights(160)), "weighted", "two"),
    _compare("areas", "two-a two-b", ["roc_auc", "roc_gini@A", "roc_auc_ovr_macro"]),
    _compare("losses", "two-a two-b", ["log_loss", "brier_score", "au_imcp", "balanced_log_loss", "spherical_score"]),
    _compare("shares", "a b", ["top_k_accuracy(k=2)", "fraction_uncertain", "fraction_correct_certain"]),
    _compare("averages", "a b", ["roc_auc_ovr_macro", "roc_auc_ovo_macro", "mean(roc_auc@*)", "gps(roc_auc@*)"]),
    _compare("resampled", "two-a two-b", ["average_precision", "ks_statistic", "expected_calibration_error"]),
    _compare("mixed", "two-a two-b", ["accuracy", "mean(h_mean, roc_auc)", "log_loss"]),
    _compare("list", "a b", ["roc_auc@*", "average_precision@C"]),
    _compare("three", "a b c", ["roc_auc@A", "log_loss", "top_k_accuracy"]),
    _compare("three-with-baseline", "a b c", ["roc_auc_ovr_weighted", "mean_phi@*"], baseline="$a"),
    _compare("independent", "two-a two-b", ["roc_auc", "log_loss", "average_precision"], paired=False),
    _compare("class-mixes", "two-a elsewhere", ["roc_auc", "log_loss", "average_precision", "accuracy"]),
    _compare("one-test-set", "no-ids-a no-ids-b", ["roc_auc", "log_loss", "average_precision"]),
    _compare("partly-matched", "two-a shifted", ["roc_auc", "brier_score"], minimum_matched=0.5),
    _compare("scores", "scores-a scores-b", ["roc_auc", "average_precision"]),
    _compare("scores-and-probabilities", "scores-a two-b", ["roc_auc", "accuracy"]),
    _compare(
        "cost-ratios",
        "two-a two-b",
        ["accuracy"],
        cost_ranges={"prevalence": 0.1, "best_thresholds": True},
        paired_tests=False,
    ),
    _compare("cost-ratios-of-three-classes", "a b", ["accuracy"], cost_ranges={}),
    _compare("the-same", "two-a two-same", ["roc_auc", "log_loss", "average_precision"]),
    _compare("folds", "folds-a folds-b", ["roc_auc", "log_loss", "accuracy"]),
    _compare("brier-skill", "two-a two-b", ["brier_skill_score", "median_phi"], level=0.8, rope=0.05),
    _compare("grouped-matrices", "grouped-a grouped-b", ["accuracy", "f1"]),
    _compare("grouped-refused", "grouped-a grouped-b", ["roc_auc"]),
    _compare("matrix-refused", "two-a matrix", ["roc_auc"]),
    _compare("forgotten-refused", "two-a forgotten", ["log_loss"]),
    _compare("scores-have-no-loss", "scores-a scores-b", ["log_loss"]),
    _compare("weights-refused", "two-a weighted", ["log_loss"]),
    get("read", "/v1/comparisons/$three"),
]

_ACCURACIES = ((88, 84, 60), (75, 79, 50), (91, 90, 70), (66, 61, 64), (80, 74, 55), (95, 93, 90), (70, 72, 41))
_MODELS = ("forest", "boosted", "majority")
_DATASETS = [f"set-{row}" for row in range(len(_ACCURACIES))]


def _judge(name: str, metric: str = "accuracy", **members: Any) -> Call:
    body = {"metric": metric, "models": list(_MODELS), "datasets": _DATASETS, "seed": 1, **members}
    return post(name, "/v1/comparisons/across-datasets", body)


TOURNAMENTS = [
    *(
        keep(f"{model}-{row}", of_matrix([[right, 100 - right], [90 - right // 2, right // 2]]), model, _DATASETS[row])
        for row, accuracies in enumerate(_ACCURACIES)
        for model, right in zip(_MODELS, accuracies, strict=True)
    ),
    *(
        keep(f"{model}-soft-{row}", scored(60, (3, 2), skill, 10 * row + place), f"{model}/soft", f"soft-{row}/v1/test")
        for row in range(5)
        for place, (model, skill) in enumerate((("forest", 0.9), ("boosted", 0.7)))
    ),
    _judge("plain"),
    _judge("control", control="majority", multiplicity="bonferroni"),
    _judge("tie-corrected", "h_mean", tie_corrected=True, zeros="drop", rope=0.05),
    _judge("lower-is-better", "error_rate", level=0.9, multiplicity="none"),
    _judge("two-models", "macro_f1", models=["forest", "majority"], multiplicity="benjamini_hochberg"),
    _judge("expression", "mean(recall@*)"),
    _judge("complete", datasets=[*_DATASETS, "soft-0"], complete=True),
    *(
        _judge(
            f"soft-{metric.partition('@')[0].replace('_', '-')}",
            metric,
            models=[{"name": "forest", "version": "soft"}, {"name": "boosted", "version": "soft"}],
            datasets=[{"name": f"soft-{row}", "version": "v1", "split": "test"} for row in range(5)],
        )
        for metric in ("roc_auc@B", "log_loss")
    ),
    get("read", "/v1/comparisons/$plain"),
    _judge("incomplete", datasets=[*_DATASETS, "soft-0"]),
    _judge("too-few", datasets=_DATASETS[:4]),
    _judge("a-list", "recall@*"),
    _judge("unknown-model", models=["forest", "nobody"]),
    _judge("twice", models=["forest", "forest"]),
    _judge("foreign-control", control="nobody"),
    _judge("not-comparable", "prevalence@1"),
]


def _board(name: str, metric: str = "h_mean", dataset: str = "board", **params: Any) -> Call:
    return get(name, "/v1/leaderboard", dataset=dataset, metric=metric, **{"seed": 1, **params})


LEADERBOARDS = [
    keep("old", of_matrix([[50, 50], [50, 50]]), "good/1", "board"),
    keep("fair", of_matrix([[88, 12], [11, 89]]), "fair", "board"),
    keep("good", of_matrix([[90, 10], [10, 90]]), "good/1", "board"),
    keep("poor", of_matrix([[70, 30], [30, 70]]), "poor", "board"),
    keep("equal", of_matrix([[88, 12], [11, 89]]), "equal", "board"),
    keep("useless", of_matrix([[100, 0], [100, 0]]), "useless", "board"),
    *(
        keep(
            f"paired-{seed}", labelled(200, _SHARES, 0.6 + seed / 20, seed, sample_ids=_ids(200)), f"p-{seed}", "paired"
        )
        for seed in range(1, 6)
    ),
    *(
        keep(f"soft-{seed}", scored(120, (3, 2), 0.3 + seed / 10, seed, sample_ids=_ids(120)), f"s-{seed}", "soft")
        for seed in range(1, 5)
    ),
    keep("soft-forgotten", scored(120, (3, 2), 0.5, 9), "forgotten", "soft", options={"retain": "none"}),
    keep("soft-matrix", of_matrix([[60, 12], [8, 40]], labels=["A", "B"]), "matrix", "soft"),
    keep("mixed-1", of_matrix(matrix(3, 120, 1)), "m-1", "mixed/v1/test"),
    keep("mixed-2", of_matrix(matrix(2, 90, 2)), "m-2", "mixed/v1/train"),
    keep("mixed-3", of_matrix([[20.5, 3], [1, 9]]), "m-3", "mixed/v2/test"),
    keep("mixed-4", labelled(90, (1, 1), 0.8, 3, group_ids=groups(90)), "m-4", "mixed/v2/test"),
    _board("default"),
    _board("accuracy", "accuracy"),
    _board("mcc", "mcc", level=0.8),
    _board("alias", "kappa"),
    _board("lower-is-better", "error_rate"),
    _board("undefined-for-one", "macro_f1"),
    _board("posterior", "bennett_s", limit=3),
    _board("expression", "min(recall@*)"),
    _board("of-a-class", "f1@0"),
    _board("with-parameters", "f_beta(beta=2)@1"),
    _board("combination", "gps(recall@*, precision@1)"),
    _board("paired", dataset="paired"),
    _board("paired-expression", "min(recall@*)", "paired"),
    _board("paired-accuracy", "accuracy", "paired", level=0.99),
    _board("areas", "roc_auc@B", "soft"),
    _board("losses", "log_loss", "soft"),
    _board("resampled", "average_precision@B", "soft"),
    _board("mixed-expression", "mean(h_mean, roc_auc@B)", "soft"),
    _board("mixed", "accuracy", "mixed"),
    _board("split", "h_mean", "mixed", dataset_version="v1", split="test"),
    _board("no-such-dataset", "h_mean", "nothing"),
    _board("unknown-metric", "h_meen"),
    _board("a-list", "recall@*"),
    _board("not-comparable", "prevalence@0"),
    _board("where", where=["mcc>=0.5", "accuracy<0.9"]),
    _board("where-expression", "min(recall@*)", where="accuracy>0.5"),
    _board("where-nothing", where="mcc>0.99"),
    _board("where-no-condition", where="mcc"),
    _board("no-limit", limit=0),
    get("no-dataset", "/v1/leaderboard"),
    keep("week-1", of_matrix([[90, 10], [2, 8]]), "watched/1", "weeks"),
    keep("week-2", of_matrix([[88, 12], [3, 7]]), "watched/2", "weeks"),
    get("history", "/v1/models/watched/history", dataset="weeks", metric="precision@1"),
    get("history-drawn", "/v1/models/watched/history/plots/history.json", dataset="weeks", metric="precision@1"),
    get("history-of-nothing", "/v1/models/watched/history", dataset="nothing"),
]
