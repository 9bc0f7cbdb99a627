"""What answers look like in a console, in a notebook and as tables; and what scikit-learn's users have as arguments."""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import prevail
import pytest
from prevail.results.answer import Answer
from prevail.results.decisions import Check, Comparison, History, Leaderboard, Tournament
from prevail.results.evaluation import Evaluation, Value
from prevail.results.html import counted, table_html
from prevail.results.html import shown as cell
from prevail.results.listing import Facts, Listing
from prevail.results.slicing import Slices
from prevail.results.words import rule_text
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.svm import LinearSVC

from app.domain.wording import PLAIN, whole
from tests.bank import each
from tests.client.conftest import BETTER, MATRIX

# An answer of every operation, as the document of the service shows them.
EXAMPLES = json.loads((Path(__file__).resolve().parents[2] / "app" / "api" / "examples.json").read_text())
KINDS = {
    "CheckAnswer": Check,
    "Evaluation": Evaluation,
    "HistoryPage": History,
    "Leaderboard": Leaderboard,
    "ModelComparison": Tournament,
    "RunComparison": Comparison,
    "Slices": Slices,
}

ASKED: dict[str, Callable[[prevail.Client], Answer]] = {
    "project": lambda pv: pv.project("shown:1", dataset="shown", prevalence={"1": 0.4}),
    "threshold": lambda pv: pv.threshold("shown:2", dataset="shown"),
    "curve": lambda pv: pv.curve("shown:2", "roc", of="1"),
    "metric": lambda pv: pv.metric("h_mean"),
    "metrics": lambda pv: pv.metrics("recall"),
    "gate": lambda pv: pv.put_gate("shown", [{"metric": "h_mean", "min": 0.5}]),
    "gates": lambda pv: pv.gates(),
    "plot": lambda pv: pv.plot("shown:1", "confusion"),
    "compare": lambda pv: pv.compare("shown:1", "shown:3", dataset="shown"),
    "leaderboard": lambda pv: pv.leaderboard("shown"),
    "check": lambda pv: pv.check("shown", "shown:1"),
}
SCORES = np.linspace(0.05, 0.95, 80)


@pytest.fixture(autouse=True, scope="module")
def _runs(pv: prevail.Client) -> None:
    labels = ["0", "1", "2", "3"]
    pv.evaluate(matrix=MATRIX, labels=labels, model="shown:1", dataset="shown")
    pv.evaluate(matrix=BETTER, labels=labels, model="shown:3", dataset="shown")
    truth = [int(one > 0.4) for one in SCORES[::-1]]
    pv.evaluate(truth, scores=SCORES, positive=1, threshold=0.5, model="shown:2", dataset="shown")
    # Tests of one module may be in different processes: none makes what another one takes.
    ASKED["gate"](pv)


@pytest.mark.parametrize("name", ASKED)
def test_every_answer_has_a_text_a_view_and_a_table(pv: prevail.Client, name: str) -> None:
    answer = ASKED[name](pv)
    assert repr(answer).startswith("<")
    assert "{'" not in answer.summary()
    table = answer.to_pandas()
    assert len(table) > 0
    assert len(table.columns) > 1
    assert answer._repr_html_()


@each("name", EXAMPLES)
def test_every_example_of_an_answer_has_words_a_view_and_a_table(name: str) -> None:
    found = EXAMPLES[name]
    is_page = "items" in found and name not in KINDS
    answer = KINDS.get(name, Facts)(found) if not is_page else Listing(found["items"])
    texts = [repr(answer), str(answer), answer.summary()]
    assert all(text and not {"{'", "['", "}, {"} & {text[at : at + 2] for at in range(len(text))} for text in texts)
    assert max(map(len, answer.summary().splitlines())) <= 400
    table = answer.to_pandas()
    assert [*table.columns] == [*answer.columns]
    assert len(table) == len([*answer.rows()])
    assert len(table) > 0 or not found.get("items", found.get("slices"))
    assert "{'" not in (answer._repr_html_() or "-")


def test_what_matters_stands_first() -> None:
    said = Comparison(EXAMPLES["RunComparison"]).summary()
    assert said.startswith("g-3 is best by accuracy, 0.788; g-1 may be as good\n")
    assert Check(EXAMPLES["CheckAnswer"]).summary().startswith("pass: gate g, version 1, m\n")
    answer = json.loads(json.dumps(EXAMPLES["RunComparison"]))
    first = answer["metrics"]["accuracy"]
    first["may_be_best"] = None
    for pair in first["differences"]:
        pair |= {"low": 0.01, "high": 0.02}
    assert Comparison(answer).title().endswith("; no other may be as good")
    for low, high, alike in ((-0.01, 0.02, True), (-0.01, None, True), (0.01, None, False), (None, 0.02, True)):
        first["differences"][0] |= {"low": low, "high": high}
        assert Comparison(answer).title().endswith("; g-1 may be as good") == alike
    assert str(Value("log_loss", 0.5, 0.3)) == "0.500 (at least 0.300)"
    assert str(Value("log_loss", 0.5, None, 0.7)) == "0.500 (at most 0.700)"
    assert repr(Leaderboard(EXAMPLES["Leaderboard"])) == "<Leaderboard mixed by h_mean, the best first>"
    rule = {"metric": "accuracy", "not_worse_than": "baseline", "margin": 0.01, "bound": "lower", "level": 0.95}
    gates = Listing([{"name": "g", "rules": [{"metric": "h_mean", "min": 0.8}, rule]}]).summary()
    assert gates.endswith("h_mean >= 0.8; accuracy not worse than baseline, margin 0.01")


def test_what_evaluations_are_made_of_has_its_name() -> None:
    for kind, content, count, said in (
        ("predictions", "counts", 2000, "2,000 samples"),
        ("ranking", "counts", 60, "60 queries"),
        ("sets", "counts", 120, "120 items"),
        ("confusion_matrix", "weights", 50.02, "50.02 in weight"),
        ("confusion_matrix", "weights", 4.2e-07, "4.2e-07 in weight"),
    ):
        data = {"input": {"kind": kind, "content": content}, "headline": {"n_samples": count}}
        assert Evaluation(data).title().endswith(f", {said}")


def test_a_notebook_has_counts_and_no_endless_lines() -> None:
    columns = [f"c{place}" for place in range(40)]
    shown = table_html(columns, [[2000.0, None, 0.5, *range(37)], [3.0, "", 1.0, *range(37)]])
    assert shown.count("<th ") == 20
    assert "c1<" not in shown
    assert [text for text in (">2,000<", ">3<", ">0.500<", ">1.000<", "to_pandas() has all") if text not in shown] == []
    assert "to_pandas" not in table_html(columns[:3], [[2000.0, None, 0.5]])


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"min": 0.8, "bound": "upper"}, "m not surely below 0.8"),
        ({"max": 0.8, "bound": "value"}, "m <= 0.8, by its value alone"),
        ({"not_worse_than": "baseline", "margin": 0.05, "bound": "upper"},
         "m not surely worse than baseline, margin 0.05"),
        ({"better_than": "baseline", "margin": 0, "bound": "lower"}, "m better than baseline, margin 0"),
        ({"not_changed_since": "last_change", "bound": "lower"}, "m not changed since the last change"),
    ],
)  # fmt: skip
def test_a_rule_that_fails_for_certain_only_reads_as_one(rule: dict[str, Any], said: str) -> None:
    assert rule_text({"metric": "m", "level": 0.95, **rule}) == said


def test_one_sample_is_one() -> None:
    assert [rule_text({"minimum_samples": fewest}) for fewest in (1, 2000)] == [
        "at least 1 sample", "at least 2,000 samples",
    ]  # fmt: skip


def test_tables_are_those_that_one_would_draw(pv: prevail.Client) -> None:
    curve = ASKED["curve"](pv).to_pandas()
    assert {"x", "y", "thresholds"} <= {*curve.columns}
    assert {"metric", "value", "low", "high"} <= {*ASKED["project"](pv).to_pandas().columns}


def test_notebooks_draw_figures(pv: prevail.Client) -> None:
    bundle = pv.plot("shown:1", "confusion")._repr_mimebundle_()
    assert bundle["application/vnd.vegalite.v6+json"]["layer"]
    assert bundle["image/svg+xml"].startswith("<svg")
    assert "Confusion matrix" in bundle["text/plain"]


def test_a_comparison_has_names(pv: prevail.Client) -> None:
    found = pv.compare("shown:1", "shown:3", dataset="shown")
    assert "shown 3" in found.summary()
    assert "shown 3" in found._repr_html_()


def test_signatures_say_what_is_called() -> None:
    for owner in (prevail.Client, prevail.Client("http://elsewhere.test")):
        shown = inspect.signature(owner.evaluate)
        assert shown.return_annotation is prevail.Evaluation
        assert "y_true" in shown.parameters


def test_an_undefined_overall_value_of_two_classes_has_the_reason_of_its_class(pv: prevail.Client) -> None:
    found = pv.evaluate([0, 1, 0, 1], [0, 0, 0, 0])
    assert found["precision"].reason == "class '1' is never predicted"


def test_faults_of_probabilities_name_rows_and_columns(pv: prevail.Client) -> None:
    truth, shares = [0, 1, 2] * 4, np.full((12, 3), 1 / 3)
    with pytest.raises(prevail.InvalidInput, match="got 2 for the 3 in y_true"):
        pv.evaluate(truth, probabilities=shares[:, :2])
    with pytest.raises(prevail.InvalidInput, match="each of 2 labels, got 3"):
        pv.evaluate(truth, probabilities=shares, labels=[0, 1])
    broken = shares.copy()
    broken[7, 1] = np.nan
    with pytest.raises(prevail.InvalidInput, match=r"probabilities\[7\]\[1\]: expected finite"):
        pv.evaluate(truth, probabilities=broken)
    with pytest.raises(prevail.InvalidInput, match=r"y_pred\[1\]: expected finite"):
        pv.evaluate([0, 1], [0, float("nan")])
    assert pv.evaluate(truth, probabilities=shares.astype("float16"), renormalize=True).headline["n_samples"] == 12


def test_an_estimator_is_asked_for_the_best_that_it_has(pv: prevail.Client) -> None:
    values = np.random.default_rng(1).normal(size=(90, 2))
    truth = np.array(["a", "b"])[(values[:, 0] > 0).astype(int)]
    for model, kind in ((LogisticRegression(), "probabilities"), (LinearSVC(), "scores")):
        found = pv.evaluate_model(model.fit(values, truth), values, truth, positive="b", model="linear:1")
        assert found.data["input"]["kind"] == kind
        assert found.model == {"name": "linear", "version": "1"}
        assert float(found["accuracy"]) > 0.5
        # What one asks of two classes stands in the view and in the text.
        assert {"recall", "precision", "f1", "roc_auc"} <= {*found.leading()}
        assert "roc_auc" in found._repr_html_()
    with pytest.raises(TypeError, match="no argument 'name', 'colour' of an evaluation"):
        pv.evaluate_model(model, values, truth, name="linear", colour="red")


def test_estimators_of_several_outputs(pv: prevail.Client) -> None:
    values = np.random.default_rng(1).normal(size=(40, 3))
    truth = (values > 0).astype(int)
    for only in (0, 1):
        truth[:, 2] = only
        found = pv.evaluate_model(RandomForestClassifier(3, random_state=1).fit(values, truth), values, truth)
        assert (found.data["input"]["kind"], found["hamming_loss"] < 0.2) == ("multilabel", True)
        expected = [[0, 0], [0, 40]] if only else [[40, 0], [0, 0]]
        assert found.data["input"]["label_matrices"]["2"] == expected
    truth[:, 2] = values[:, 2] > 0
    for model in (MultiOutputClassifier(LinearSVC()), ClassifierChain(LogisticRegression())):
        assert pv.evaluate_model(model.fit(values, truth), values, truth)["subset_accuracy"] > 0.7
    truth[:, 2] = np.arange(40) % 3
    with pytest.raises(prevail.InvalidInput, match="outputs of 0 and 1, got one of 0, 1, 2"):
        pv.evaluate_model(RandomForestClassifier(3).fit(values, truth), values, truth)


def test_other_kinds_have_arguments_too(pv: prevail.Client, tmp_path: Path) -> None:
    assert pv.evaluate_clusters([0, 0, 1, 1], [1, 1, 0, 0])["adjusted_rand"].value == pytest.approx(1)
    labels = pv.evaluate(np.array([[1, 0], [1, 1]]), np.array([[1, 0], [0, 1]]), labels=["a", "b"])
    assert labels["subset_accuracy"].value == pytest.approx(0.5)
    lists = pv.evaluate([["a"], ["a", "b"]], [["a"], ["b"]], sample_ids=[7, 8], model="l:1", dataset="labels")
    assert lists["subset_accuracy"] == labels["subset_accuracy"]
    frame = pd.DataFrame([[1, 0], [1, 1]], columns=["a", "b"])
    assert pv.evaluate(frame, probabilities=frame * 0.8).labels == ["a", "b"]
    raw = pv.evaluate(frame, scores=frame * 8 - 1, threshold=[6, 7.5])
    assert raw.data["input"]["threshold"] == [6, 7.5]
    assert raw["subset_accuracy"].value == pytest.approx(0.5)
    pv.evaluate([["a"], ["a", "b"]], [["a"], ["a"]], sample_ids=[7, 8], model="l:2", dataset="labels")
    assert pv.compare("l:1", "l:2").data["design"]["paired"]
    sets = pv.evaluate_sets([["the", "cat"], ["a", "dog"]], [["the", "cat"], ["a", "bird"]])
    assert sets["samples_f1"].value == pytest.approx(0.75)
    as_sets = pv.evaluate_sets([{"the", "cat"}, {"a", "dog"}], [{"the", "cat"}, frozenset({"a", "bird"})])
    assert as_sets["samples_f1"] == sets["samples_f1"]
    ranking = pv.evaluate_ranking({"q": {"a": 1}}, {"q": {"a": 0.9, "b": 0.1}})
    assert ranking["mean_reciprocal_rank"].value == pytest.approx(1)
    missed = pv.evaluate_ranking({"q": {"a": 1, "c": 1}, "r": {"a": 1}}, {"q": {"b": 0.3, "a": 0.1}})
    # The first relevant item is second of two for q, and nothing was retrieved for r.
    assert missed["mean_reciprocal_rank"].value == pytest.approx(0.25)
    assert missed["mean_average_precision"].value == pytest.approx(0.125)
    qrels, run = tmp_path / "qrels.txt", tmp_path / "my.run"
    qrels.write_text("q 0 a 1\nq 0 c 1\nr 0 a 1\n")
    run.write_text("q Q0 b 1 0.3 me\nq Q0 a 2 0.1 me\n")
    assert pv.evaluate_ranking(qrels, str(run))["mean_average_precision"] == missed["mean_average_precision"]
    judged = pd.DataFrame({"qid": ["q", "q", "r"], "docno": ["a", "c", "a"], "relevance": [1, 1, 1]})
    found = pd.DataFrame({"query_id": ["q", "q"], "doc_id": ["b", "a"], "score": [0.3, 0.1]})
    assert pv.evaluate_ranking(judged, found)["mean_average_precision"] == missed["mean_average_precision"]
    with pytest.raises(prevail.InvalidInput, match="expected a column 'relevance' or 'label', got 'query_id'"):
        pv.evaluate_ranking(found, found)
    with pytest.raises(prevail.InvalidInput, match=r"no\.run cannot be read: No such file"):
        pv.evaluate_ranking(qrels, tmp_path / "no.run")
    with pytest.raises(prevail.InvalidInput, match="scores: expected numbers"):
        pv.evaluate_ranking({"q": {"a": 1}}, {"q": {"a": None}})
    for wrong in ({"q": 1}, {"q": ["a"]}, [("q", "a", 1)], None):
        with pytest.raises(prevail.InvalidInput, match="relevance: expected numbers by query and item"):
            pv.evaluate_ranking(wrong, wrong)
    with pytest.raises(prevail.InvalidInput, match=r"qrels.txt, line 1: expected 6 words with a number as number 5"):
        pv.evaluate_ranking(qrels, qrels)


def test_a_run_that_is_there_for_several_splits_is_not_taken_by_chance(pv: prevail.Client) -> None:
    for split in ("val", "test"):
        pv.evaluate(matrix=MATRIX, labels=["0", "1", "2", "3"], model="split:1", dataset="shared", split=split)
    pv.put_gate(
        "one-split",
        [{"metric": "h_mean", "max": 1.0}],
        applies_to={"dataset": {"name": "shared", "split": "val"}},
    )
    pv.put_gate("any-split", [{"metric": "h_mean", "max": 1.0}])
    named = r"shared \(split test\), shared \(split val\): name one of them by dataset and split"
    for ask in (
        lambda: pv.check("any-split", "split:1"),
        lambda: pv.project("split:1", prevalence={"1": 0.4}),
        lambda: pv.evaluation("split:1", dataset="shared"),
    ):
        with pytest.raises(prevail.errors.InvalidInput, match=named):
            ask()
    pv.evaluate(matrix=MATRIX, labels=["0", "1", "2", "3"], model="split:2", dataset="shared", split="val")
    with pytest.raises(prevail.errors.InvalidInput, match=r"the runs on shared are of shared \(split"):
        pv.leaderboard("shared")
    assert pv.check("any-split", "split:1", dataset="shared", split="test").verdict == "pass"
    assert pv.check("one-split", "split:1").verdict == "pass"
    assert pv.leaderboard("shared", split="val").data["items"][0]["rank"] == 1


def test_sentences_are_whole_and_what_no_cell_has_room_for_is_counted(pv: prevail.Client) -> None:
    said = pv.project("shown:1", dataset="shown", prevalence={"1": 0.4}).summary()
    assert "each class is predicted does not depend on how frequent" in said
    accuracy = next(line for line in said.splitlines() if line.startswith("accuracy"))
    assert "all of it because 1 becomes more frequent (30 % to 40 %)" in accuracy
    assert "factor" not in said
    assert Facts({"n": 1, "made": {"of": [{"a": 1, "b": 2, "c": 3, "d": 4}]}}).summary().endswith("1 item")
    curve = {"threshold": 0.3, "curve": {"x": [*range(30)], "y": [*range(30)]}, "rules": [{"a": 1}]}
    assert "curve.x, curve.y: 30 lines, in its JSON" in Facts(curve).summary()
    table = Facts({"matrix": [[119.0, 18.0], [31.0, 132.0]]}).summary()
    assert table.splitlines()[-1].split() == ["1", "31", "132"]
    values = Facts({"a": [0.9999999999999998, 0.5], "b": [0.9999999, 1e-14]}).summary()
    assert [line.split() for line in values.splitlines()[-2:]] == [["1.000", ">0.99999"], ["0.500", "1e-14"]]


def test_numbers_are_those_of_the_texts_of_the_service() -> None:
    """Halves of a decimal go away from zero, large numbers have fewer decimals, and nearly 1 is a bound."""
    values = [0.0, 0.5, 1.0, 0.8125, 0.3675, 0.0625, -0.0625, 0.9996, 0.9999999, -0.9999999, 1.0000001, 5.0, 12.345]
    values += [-123.456, 1234.56, 12345.6, 2.0, -1.0, 0.99995]
    assert [cell(one) for one in values] == [PLAIN.value(one) for one in values]
    weights = [4755.65, 0.0, 2000.0, 49.564, 0.1234567, 4.3e-12]
    assert [counted(one) for one in weights] == [whole(one) for one in weights]


def test_what_has_no_headline_is_shown_too(pv: prevail.Client) -> None:
    """Points without classes have metrics, and decisions that are no classes have shares by the names of metrics."""
    features = [[0.0], [0.1], [1.0], [1.2]]
    points = pv.evaluate(input={"kind": "clustering", "y_pred": [0, 0, 1, 1], "features": features})
    assert "<code>silhouette</code></td>" in points._repr_html_()
    source = {"matrix": [[8, 1, 1], [0, 5, 0]], "labels": ["A", "B"], "decisions": ["A", "B", "ask me"]}
    decisions = pv.evaluate(input={"kind": "confusion_matrix", **source})
    assert decisions['decision_share_of_class(decision="ask me")@A'] == 0.1
    assert "decision_share_of_class(decision=B)@B" in decisions.summary()


def test_a_notebook_draws_no_less_than_there_is_and_says_why_a_value_is_missing(pv: prevail.Client) -> None:
    view = pv.evaluate(["a"] * 10 + ["b"] * 2, ["a"] * 12, labels=["a", "b", "c"])._repr_html_()
    rows = {row.partition("</code>")[0]: row for row in view.split("<code>")[1:]}
    assert "class &#x27;c&#x27; has no actual samples" in rows["h_mean"]
    # Its limits begin below the line, which ends at 0.
    assert ">-0." in rows["cohen_kappa"]
    assert "<svg" not in rows["cohen_kappa"]
    assert "<svg" in rows["accuracy"]


def test_a_history_is_shown_as_its_changes_and_values() -> None:
    history = History(EXAMPLES["HistoryPage"])
    view = history._repr_html_() or ""
    assert view.startswith("<p><b>No change beyond chance.")
    assert "next_cursor" not in view + repr(history)
    assert view.count("<tr>") == 1 + len(history.items)


def test_the_gravest_finding_stands_first() -> None:
    found = Evaluation({"findings": [{"severity": one, "message": one} for one in ("note", "critical", "warning")]})
    assert [one["severity"] for one in found.findings] == ["critical", "warning", "note"]
