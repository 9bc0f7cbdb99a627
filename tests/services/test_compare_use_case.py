"""Comparisons of runs without a database: what is equal under several names, what draws follow from, what is read."""

from contextvars import copy_context
from typing import Any

import numpy as np
import pytest

from app.domain.errors import IncomparableRuns
from app.domain.evaluation import DatasetRef, EvaluationRecord, ModelRef
from app.domain.inputs.classified import Predictions
from app.domain.inputs.multilabel import Multilabel
from app.kernel.compare.paired.tests import mcnemar_mid_p
from app.kernel.compare.rankings import Adjustment, adjust
from app.kernel.uncertainty.intervals import wilson
from app.services.compare.across_datasets import Tournament
from app.services.processes.worker import tell_progress
from app.services.runs.aligned import Runs
from app.services.runs.differences import NO_VALUE, NOT_REACHED, OF_SIZES
from app.services.runs.pairing import PairingMode
from tests.kernel.compare.tango import tango_interval
from tests.services.memory import Bench, labelled, matrix, probable, rule

Json = dict[str, Any]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def only(answer: Json, metric: str) -> Json:
    (difference,) = answer["metrics"][metric]["differences"]
    found: Json = difference
    return found


def noisy(truth: Any, accuracy: float, seed: int) -> Any:
    """Labels that are right that often, and else anything."""
    random = np.random.default_rng(seed)
    return np.where(random.random(truth.size) < accuracy, truth, random.integers(0, truth.max() + 1, truth.size))


TRUTH = np.random.default_rng(7).choice(2, 160, p=[0.8, 0.2])


def pair_of(bench: Bench, design: str) -> list[EvaluationRecord]:
    """Two runs on two classes: paired, of one test set, or independent with the same class mix."""
    predictions = [noisy(TRUTH, accuracy, seed) for seed, accuracy in enumerate((0.85, 0.7))]
    if design == "sample_ids":
        return [bench.keep(labelled(TRUTH, one), f"m{seed}", "d") for seed, one in enumerate(predictions)]
    counts = [np.array([[np.sum((t == TRUTH) & (one == p)) for p in (0, 1)] for t in (0, 1)]) for one in predictions]
    datasets = ("d", "d") if design == "same_test_set" else ("d", "e")
    return [bench.keep(matrix(one), f"m{seed}", datasets[seed]) for seed, one in enumerate(counts)]


def test_metrics_that_are_done_are_told(bench: Bench) -> None:
    """Of three metrics and what is said of all of them."""
    records = pair_of(bench, "sample_ids")
    told: list[float] = []

    def compared() -> None:
        tell_progress(told.append)
        bench.compare(records, "accuracy", "mcc", "h_mean", draws=200)

    copy_context().run(compared)
    assert told == [0.25, 0.5, 0.75]


def test_what_depends_on_the_number_of_samples_is_not_brought_to_another_prevalence(bench: Bench) -> None:
    """Matrices scaled to common class shares hold weights: fit for accuracy, not for the adjusted Rand index."""
    runs = [
        bench.keep(matrix(rows), f"m{k}", f"d{k}") for k, rows in enumerate(([[80, 20], [5, 15]], [[30, 20], [9, 61]]))
    ]
    answer = bench.compare(runs, "accuracy", "adjusted_rand", "krippendorff_alpha", draws=200)
    assert answer["metrics"]["accuracy"]["prevalence"] == "reprojected"
    for metric in ("adjusted_rand", "krippendorff_alpha"):
        found = answer["metrics"][metric]
        assert found["prevalence"] == "incomparable"
        assert found["values"] == [None, None]
        assert None not in found["observed_values"]
        assert only(answer, metric)["p_value"] is None
    (note,) = [note for note in answer["notes"] if "number of samples" in note]
    assert "adjusted_rand, krippendorff_alpha" in note
    assert "accuracy" not in note
    same = [
        bench.keep(matrix(rows), f"n{k}", f"e{k}") for k, rows in enumerate(([[80, 20], [5, 15]], [[60, 40], [1, 19]]))
    ]
    assert None not in bench.compare(same, "adjusted_rand", draws=200)["metrics"]["adjusted_rand"]["values"]


@pytest.mark.parametrize("metric", ["fp@1", "zero_one_loss_count", "fossum_similarity@1"])
def test_what_moves_with_the_number_of_samples_is_compared_between_runs_of_one_size(bench: Bench, metric: str) -> None:
    small, large = [[80, 20], [10, 90]], [[160, 40], [20, 180]]
    runs = [bench.keep(matrix(rows), f"m{k}") for k, rows in enumerate((small, large))]
    bench.keep(matrix(small), "m0", "e")
    bench.keep(matrix([[70, 30], [10, 90]]), "m1", "e")
    answer = bench.compare(runs, metric, "accuracy")
    found = answer["metrics"][metric]
    assert (found["prevalence"], found["values"], found["ranks"]) == ("incomparable", [None] * 2, [None] * 2)
    assert (only(answer, metric)["difference"], only(answer, metric)["reason"]) == (None, OF_SIZES)
    assert None not in found["observed_values"]
    assert only(answer, "accuracy")["low"] is not None
    assert (
        f"The runs have different numbers of samples. Not compared: {metric}, which move with them." in answer["notes"]
    )
    board = bench.rank(metric)
    assert [line["separable_from_best"] for line in board["items"]] == [None, None]
    assert board["notes"] == [f"which runs may be the best is not known: {OF_SIZES}"]
    assert bench.rank(metric, "e")["items"][1]["separable_from_best"] is not None
    (result,) = bench.check([rule(metric, not_worse_than="baseline", margin=0.01)], *runs)["results"]
    assert (result["verdict"], result["value"]) == ("inconclusive", None)
    assert result["message"] == f"The difference in {metric}, candidate less baseline, is undefined: {OF_SIZES}."
    across = Tournament(
        metric=metric, models=(ModelRef("m0"), ModelRef("m1")), datasets=(DatasetRef("d"), DatasetRef("e"))
    )
    with pytest.raises(IncomparableRuns, match=OF_SIZES):
        bench.judge(across)


def test_a_baseline_at_a_prevalence_that_cannot_be_reached_says_so(bench: Bench) -> None:
    """The value of either run is known."""
    run, other = bench.keep(matrix([[80, 20], [10, 90]])), bench.keep(matrix([[88, 22], [20, 70]]))
    for metric, against in (("krippendorff_alpha", other), ("accuracy", bench.keep(matrix([[88, 22], [0, 0]])))):
        (result,) = bench.check([rule(metric, better_than="baseline")], run, against)["results"]
        assert (result["verdict"], result["value"]) == ("inconclusive", None)
        assert result["message"].endswith(f"is undefined: {NOT_REACHED}.")


def test_slices_that_differ_in_prevalence_are_compared_at_that_of_both_and_say_so(bench: Bench) -> None:
    """The runs themselves have one prevalence, and as many samples."""

    def run(model: str, *sizes: int, most: int | None = None) -> EvaluationRecord:
        truth, women = np.repeat([0, 1, 0, 1], sizes), np.repeat([True, True, False, False], sizes)
        predicted = noisy(truth, 0.7, 1)
        sent = Predictions(
            y_true=truth[:most].tolist(), y_pred=predicted[:most].tolist(), attributes={"women": women[:most].tolist()}
        )
        return bench.keep(sent.read("/input"), model)

    sizes, several, one = (
        ((100, 50, 60, 190), (70, 60, 90, 180)),
        "range(precision@1, by=women)",
        "precision@1[women=true]",
    )
    answer = bench.compare([run("m", *each) for each in sizes], several, one, "fp@1[women=true]")
    for metric in (several, one):
        found = answer["metrics"][metric]
        assert found["prevalence"] == "reprojected"
        assert found["values"] != found["observed_values"]
    alone = bench.compare(
        [run("w", *each, most=sum(each[:2])) for each in sizes], "precision@1", seed=answer["design"]["seed"]
    )
    expected = alone["metrics"]["precision@1"]
    for name in ("values", "observed_values", "prevalence"):
        assert answer["metrics"][one][name] == expected[name]
    assert only(answer, one)["low"] == only(alone, "precision@1")["low"]
    assert f"at the mean of theirs in each slice: {several}, {one}." in answer["notes"][0]
    # 150 women are not 130.
    assert answer["metrics"]["fp@1[women=true]"]["prevalence"] == "incomparable"
    assert only(answer, "fp@1[women=true]")["reason"] == OF_SIZES


def test_of_many_slices_one_that_differs_by_chance_is_undecided(bench: Bench) -> None:
    random = np.random.default_rng(3)
    truth, site = random.integers(0, 2, 2000), random.integers(0, 20, 2000)

    def run(model: str, seed: int) -> EvaluationRecord:
        predicted = np.where(np.random.default_rng(seed).random(truth.size) < 0.2, 1 - truth, truth)
        sent = Predictions(
            y_true=truth.tolist(),
            y_pred=predicted.tolist(),
            sample_ids=list(range(truth.size)),
            attributes={"site": site.tolist()},
        )
        return bench.keep(sent.read("/input"), model)

    answer = bench.compare([run("a", 1), run("b", 2)], "accuracy", by=("site",))
    pairs = [one["metrics"]["accuracy"]["differences"][0] for one in answer["slices"]]
    assert min(one["p_value"] for one in pairs) < 0.05 < min(one["p_adjusted"] for one in pairs)
    assert {one["verdict"] for one in pairs} <= {"undecided", "same"}


def test_what_needs_numbers_of_samples_has_no_value_of_weights_wherever_it_is_asked(bench: Bench) -> None:
    runs = []
    for model, accuracy in (("a", 0.9), ("b", 0.6)):
        predicted = noisy(TRUTH, accuracy, 1)
        runs.append(bench.keep(labelled(TRUTH, predicted, weights=np.linspace(0.5, 2.0, TRUTH.size).tolist()), model))
    metrics = ("adjusted_rand", "fager_mcgowan@1")
    answer = bench.compare(runs[:2], *metrics)
    for metric in metrics:
        assert answer["metrics"][metric]["values"] == answer["metrics"][metric]["ranks"] == [None, None]
        assert only(answer, metric)["reason"] == NO_VALUE
        assert [line["value"] for line in bench.rank(metric)["items"]] == [None, None]
        rules = [rule(metric, min=0.1), rule(metric, better_than="baseline")]
        alone, both = bench.check(rules, *runs[:2])["results"]
        assert (alone["value"], both["value"]) == (None, None)
        assert alone["message"].endswith("needs numbers of samples, and the matrix holds weights.")
        assert both["message"].endswith("candidate is: needs numbers of samples, and the matrix holds weights.")


def test_of_weighted_labels_too_what_needs_numbers_of_samples_has_no_value(bench: Bench) -> None:
    truth = np.random.default_rng(2).random((60, 3)) < 0.4
    runs = []
    for model, share in (("a", 0.1), ("b", 0.3)):
        predicted = truth ^ (np.random.default_rng(3).random(truth.shape) < share)
        sent = Multilabel(
            y_true=truth.astype(int).tolist(),
            y_pred=predicted.astype(int).tolist(),
            labels=["x", "y", "z"],
            sample_ids=list(range(60)),
            sample_weight=np.linspace(0.5, 2.0, 60).tolist(),
        )
        runs.append(bench.keep(sent.read("/input"), model))
    answer = bench.compare(runs, "fager_mcgowan@x", "recall@x")
    assert answer["metrics"]["fager_mcgowan@x"]["values"] == [None, None]
    assert None not in answer["metrics"]["recall@x"]["values"]
    assert sum("needs numbers of samples, and these are weights" in note for note in answer["notes"]) == 2


def test_no_number_of_samples_settles_a_limit_of_what_grows_with_them(bench: Bench) -> None:
    run = bench.keep(matrix([[80, 20], [10, 90]]))
    (result,) = bench.check([rule("fp@1", max=25)], run)["results"]
    assert (result["verdict"], result["needed_samples"]) == ("inconclusive", None)
    assert "no number of samples settles it" in result["message"]


def test_groups_are_not_brought_to_the_prevalence_of_a_run_that_lacks_a_class(bench: Bench) -> None:
    truth = np.repeat([0, 1], [20, 30])
    grouped = bench.keep(labelled(truth, np.roll(truth, 3), groups=np.arange(50) // 3), "grouped")
    lacking = bench.keep(matrix([[0, 0], [3, 7]]), "lacking")
    for runs in ([grouped, lacking], [lacking, grouped]):
        found = bench.compare(runs, "accuracy", "recall@1")["metrics"]
        assert (found["accuracy"]["prevalence"], found["accuracy"]["values"]) == ("incomparable", [None, None])
        assert "cannot be compared" in found["accuracy"]["differences"][0]["reason"]
        assert found["recall@1"]["differences"][0]["low"] is not None
    # A class in one group is lacking without that.
    one = bench.keep(labelled(truth, np.roll(truth, 3), groups=np.where(truth == 0, 0, np.arange(50) // 3)), "one")
    found = bench.compare([one, bench.keep(matrix([[30, 10], [5, 15]]))], "accuracy")["metrics"]["accuracy"]
    assert (found["prevalence"], found["differences"][0]["low"]) == ("reprojected", None)
    assert "in one group" in found["differences"][0]["reason"]
    assert found["differences"][0]["difference"] == pytest.approx(found["values"][0] - 0.75)


def test_the_more_cells_the_fewer_draws_but_not_below_those_that_are_of_use(bench: Bench) -> None:
    """Four runs of 35 classes have 4,900 cells, two of 220 have 96,800, two of 230 have 105,800."""
    for classes, runs, draws in ((10, 4, 4000), (35, 4, 2040), (220, 2, 200), (230, 2, 0)):
        rows = 5 * np.eye(classes, dtype=int) + np.eye(classes, k=1, dtype=int) + 1
        kept = [bench.keep(matrix(rows + run), f"m{classes}-{run}", f"d{run}") for run in range(runs)]
        answer = bench.compare(kept, "accuracy")
        assert answer["design"]["draws"] == draws
        assert [note for note in answer["notes"] if "draws" in note] == (
            [f"So many classes and runs allow {draws} draws."] if 0 < draws < 4000 else []
        )


# One quantity, the names it has besides, and the line that the name is of it: offset and slope.
NAMES = {
    "recall@0": {"specificity@1": 1, "fnr@0": -1, "fpr@1": -1},
    "accuracy": {
        "error_rate": -1, "micro_fnr": -1, "accuracy_ovr@0": 1, "error_rate_ovr@1": -1, "micro_f_beta": 1,
        "zero_one_loss_count": -160, "bennett_s": 2,
    },
    "precision@1": {"fdr@1": -1, "npv@0": 1},
}  # fmt: skip


@pytest.mark.parametrize("design", ["sample_ids", "same_test_set", "independent"])
@pytest.mark.parametrize("name", NAMES)
def test_one_quantity_has_one_test_under_all_its_names(bench: Bench, design: str, name: str) -> None:
    records = pair_of(bench, design)
    answer = bench.compare(records, name, *NAMES[name], seed=3, rope=0)
    assert answer["design"]["bond"] == design
    first = only(answer, name)
    assert first["p_value"] is not None
    for other, slope in NAMES[name].items():
        found = only(answer, other)
        for member in ("p_value", "p_range", "method", "discordant", "reason"):
            assert found.get(member) == pytest.approx(first.get(member)), (other, member)
        ends = [slope * first["low"], slope * first["high"]]
        assert (found["low"], found["high"]) == pytest.approx((min(ends), max(ends)), abs=1e-9), other
        assert found["probability_a_better"] == pytest.approx(first["probability_a_better"]), other


def test_rates_of_a_class_against_the_rest_have_tests_of_shares(bench: Bench) -> None:
    """Three classes: specificity is a share of the samples of the other two classes."""
    random = np.random.default_rng(1)
    truth = random.integers(0, 3, 300)
    first, second = noisy(truth, 0.8, 2), noisy(truth, 0.6, 3)
    records = [bench.keep(labelled(truth, one), f"m{seed}") for seed, one in enumerate((first, second))]
    answer = bench.compare(records, "specificity@0", "fpr@0", "accuracy_ovr@2")
    rest = truth != 0
    b, c = (float(np.sum(rest & (one != 0) & (other == 0))) for one, other in ((first, second), (second, first)))
    found = only(answer, "specificity@0")
    assert found["p_value"] == pytest.approx(float(mcnemar_mid_p(b, c)))
    assert [found["low"], found["high"]] == pytest.approx(
        [float(end) for end in tango_interval(b, c, float(rest.sum()))]
    )
    assert found["discordant"] == b + c
    assert (found["low"], found["high"]) == (-only(answer, "fpr@0")["high"], -only(answer, "fpr@0")["low"])
    right = [(one == 2) == (truth == 2) for one in (first, second)]
    b, c = float(np.sum(right[0] & ~right[1])), float(np.sum(right[1] & ~right[0]))
    assert only(answer, "accuracy_ovr@2")["p_value"] == pytest.approx(float(mcnemar_mid_p(b, c)))


def test_numbers_of_errors_are_compared_by_the_limits_of_each_run(bench: Bench) -> None:
    records = [
        bench.keep(matrix([[80, 20], [20, 80]]), "a", "x"),
        bench.keep(matrix([[60, 40], [40, 60]]), "b", "y"),
    ]
    answer = bench.compare(records, "zero_one_loss_count", "error_rate")
    assert only(answer, "error_rate")["difference"] == pytest.approx(-0.2)
    assert only(answer, "zero_one_loss_count")["difference"] == -40
    found, (low, high) = only(answer, "zero_one_loss_count"), wilson(np.array([40.0, 80.0]), np.array([200.0, 200.0]))
    below, above = 200.0 * ([0.2, 0.4] - low), 200.0 * (high - [0.2, 0.4])
    assert found["method"] == "newcombe, newcombe"
    assert found["low"] == pytest.approx(-40 - np.hypot(below[0], above[1]))
    assert found["high"] == pytest.approx(-40 + np.hypot(above[0], below[1]))


def three(bench: Bench) -> list[EvaluationRecord]:
    """Three paired runs on three classes."""
    truth = np.random.default_rng(5).integers(0, 3, 240)
    return [bench.keep(labelled(truth, noisy(truth, 0.6 + seed / 20, seed)), f"m{seed}") for seed in range(3)]


@pytest.mark.parametrize("kind", ["labels", "matrices", "probabilities"])
def test_what_is_said_of_a_metric_does_not_depend_on_what_else_is_asked(bench: Bench, kind: str) -> None:
    truth = np.random.default_rng(5).integers(0, 2, 120)
    outputs = np.random.default_rng(6).dirichlet(np.ones(2), (2, 120))
    if kind == "labels":
        records = pair_of(bench, "sample_ids")
    elif kind == "matrices":
        records = pair_of(bench, "independent")
    else:
        records = [bench.keep(probable(truth, one), f"m{seed}") for seed, one in enumerate(outputs)]
    asked = "average_precision@1" if kind == "probabilities" else "mcc"
    beside = ["h_mean", "macro_f1"] + ["roc_auc@1", "log_loss"] * (kind == "probabilities")
    alone = bench.compare(records, asked)
    among = bench.compare(records, *beside, asked)
    assert among["design"]["seed"] == alone["design"]["seed"]
    assert among["metrics"][asked] == alone["metrics"][asked]
    for other in beside:
        assert bench.compare(records, other)["metrics"][other] == among["metrics"][other], other


def test_the_same_evaluations_sent_again_are_compared_alike(bench: Bench) -> None:
    first, second = (bench.compare(pair_of(bench, "sample_ids"), "mcc") for _ in range(2))
    assert first["evaluations"] != second["evaluations"]
    for member in ("low", "high", "p_value", "probability_a_better"):
        assert only(first, "mcc")[member] == only(second, "mcc")[member]


def test_runs_are_aligned_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    align = Runs.align.__func__  # type: ignore[attr-defined]

    def counting(cls: Any, *arguments: Any) -> Runs:
        found.append(arguments)
        aligned: Runs = align(cls, *arguments)
        return aligned

    monkeypatch.setattr(Runs, "align", classmethod(counting))
    bench.compare(three(bench), "accuracy", "macro_f1", "mcc")
    assert len(found) == 1


def test_metrics_that_disagree_are_grouped_by_the_run_they_prefer(bench: Bench) -> None:
    lazy = bench.keep(matrix([[990, 10], [90, 10]]), "lazy")
    careful = bench.keep(matrix([[900, 100], [20, 80]]), "careful")
    asked = (
        "accuracy", "h_mean", "balanced_accuracy", "g_mean", "recall", "informedness", "specificity", "mcc",
        "macro_recall",
    )  # fmt: skip
    answer = bench.compare([lazy, careful], *asked)
    (found,) = answer["disagreements"]
    assert sorted(found["metrics"]) == sorted(asked)
    assert found["prefer"] == [str(lazy.id), str(careful.id)]
    assert [one["metrics"] for one in found["prefers"]] == [
        ["accuracy", "specificity"],
        ["h_mean", "balanced_accuracy", "g_mean", "recall", "informedness", "mcc", "macro_recall"],
    ]
    assert found["message"].startswith(
        "accuracy (0.909 against 0.891) and specificity (0.990 against 0.900) prefer lazy to careful, but h_mean "
    )
    assert found["message"].endswith(" and 2 more prefer careful to lazy.")


def test_each_two_runs_that_are_found_the_best_have_a_sentence(bench: Bench) -> None:
    matrices = [[[990, 10], [90, 10]], [[900, 100], [20, 80]], [[500, 500], [1, 99]]]
    records = [bench.keep(matrix(rows), model) for rows, model in zip(matrices, ("a", "b", "c"), strict=True)]
    found = bench.compare(records, "accuracy", "h_mean", "recall", "specificity")["disagreements"]
    names = {str(record.id): record.model.name for record in records}
    assert [("".join(names[one] for one in each["prefer"]), each["metrics"]) for each in found] == [
        ("ab", ["accuracy", "specificity", "h_mean"]),
        ("ac", ["accuracy", "specificity", "recall"]),
        ("bc", ["h_mean", "recall"]),
    ]
    assert bench.compare(records[:2], "h_mean", "recall")["disagreements"] == []


def test_pairing_that_is_not_wanted_is_not_read(bench: Bench) -> None:
    records = pair_of(bench, "sample_ids")
    bench.memory.calls.clear()
    answer = bench.compare(records, "accuracy", paired=PairingMode.FALSE)
    assert (answer["design"]["bond"], answer["design"]["reason"]) == ("independent", "asked for as independent runs")
    assert bench.memory.calls == ["get_many"]


@pytest.mark.parametrize("paired", [PairingMode.AUTO, PairingMode.FALSE])
def test_max_t_adjusts_over_the_whole_request_by_what_varies_together(bench: Bench, paired: PairingMode) -> None:
    metrics = ("accuracy", "macro_f1", "balanced_accuracy", "mcc", "cohen_kappa", "recall@*")
    records = three(bench)
    answer = bench.compare(records, *metrics, seed=1, multiplicity=Adjustment.MAX_T, paired=paired)
    assert answer["design"]["multiplicity"] == {"method": "max_t", "family": "all differences of the request"}
    found = [one for metric in answer["metrics"].values() for one in metric["differences"]]
    p, adjusted = (np.array([one[member] for one in found]) for member in ("p_value", "p_adjusted"))
    assert len(found) == 24
    holm = adjust(p)
    assert ((p <= adjusted) & (adjusted <= holm)).all()
    # Metrics of the same predictions move together: there are far fewer than 24 things to be wrong about.
    assert (adjusted[p < 0.05] < 0.7 * holm[p < 0.05]).all()
    assert (np.diff(adjusted[np.argsort(p)]) >= 0).all()
    assert bench.compare(records, *metrics, seed=1, multiplicity=Adjustment.MAX_T, paired=paired) != answer
    again = bench.compare(records, *metrics, seed=1, multiplicity=Adjustment.MAX_T, paired=paired)
    assert again["metrics"] == answer["metrics"]


def test_max_t_of_one_difference_is_its_p(bench: Bench) -> None:
    records = pair_of(bench, "same_test_set")
    for metric in ("accuracy", "mcc"):
        found = only(bench.compare(records, metric, multiplicity=Adjustment.MAX_T), metric)
        assert found["p_adjusted"] == found["p_value"]


def test_max_t_takes_metrics_in_closed_form_as_independent(bench: Bench) -> None:
    truth = np.random.default_rng(5).integers(0, 2, 200)
    random = np.random.default_rng(6)
    outputs = [random.beta(2 + 2 * truth, 4 - 2 * truth) for _ in range(3)]
    records = [bench.keep(probable(truth, np.stack([1 - one, one], axis=1)), f"m{i}") for i, one in enumerate(outputs)]
    metrics = ("log_loss", "roc_auc@1", "average_precision@1", "mcc")
    answer = bench.compare(records, *metrics, seed=2, multiplicity=Adjustment.MAX_T)
    found = [one for metric in answer["metrics"].values() for one in metric["differences"]]
    p, adjusted = (np.array([one[member] for one in found]) for member in ("p_value", "p_adjusted"))
    assert ((p <= adjusted) & (adjusted <= adjust(p))).all()
    smallest = p.min()
    assert adjusted[p.argmin()] <= 1 - (1 - smallest) ** len(p) + 0.02
