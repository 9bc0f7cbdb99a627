"""Texts for people: what stands first, what fits, and that names do nothing but be shown."""

import copy
import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from markupsafe import escape

from app.api.answers import write_json
from app.api.bodies.parsing import parse_value
from app.api.documents.check import axis_of, limits_of, rule_text
from app.api.documents.comparison import may_be_as_good, most_telling, outcomes, turned
from app.api.documents.document import Document, Estimate
from app.api.documents.history import _heading, history_document
from app.api.documents.leaderboard import leaderboard_table
from app.api.documents.markdown import code, write_csv, write_markdown
from app.api.documents.reading import (
    in_names,
    metric_sentence,
    metrics_of,
    moves_with_prevalence,
    naming,
    said_once,
    units_of,
)
from app.api.documents.slices import _ordered
from app.api.documents.text import Style, Track, columns_of, shortened, wrapped, write_text
from app.api.presentation import CHECK, COMPARISON, EVALUATION, LEADERBOARD, SLICES, AnswerKind
from app.api.report import write_page
from app.api.v1.requests.evaluations import EvaluationRequest
from app.domain.catalogue import spoken, titled
from app.domain.wording import printable
from app.services.evaluate.evaluations import evaluate_alone
from tests.golden.playing import read_answers
from tests.golden.requests import GROUPS

Json = Mapping[str, Any]
PAPER = [[800, 0, 0, 0], [0, 600, 0, 0], [0, 0, 500, 0], [40, 24, 20, 16]]
REPORT = """\
tumor-rf 7 on hartwig, test                             2,000 samples, 4 classes
WARNING  Class D is found in 16 of 100 cases (16 %). Accuracy hides this: it is
         0.958, because D is only 5 % of the data. h_mean counts every class
         alike: 0.432.

  metric                      value  95 % interval    0    .5     1   balanced
Does not move with prevalence
  h_mean                      0.432  0.304 to 0.560  |    [o-]     |  same
  g_mean                      0.632  0.560 to 0.701  |       [o    |  same
  balanced_accuracy           0.790  0.774 to 0.810  |         o]  |  same
  recall@D                    0.160  0.101 to 0.244  | [o]         |  same
Moves with prevalence
  accuracy                    0.958  0.948 to 0.966  |           o]|  0.790
  macro_f1                    0.803  0.773 to 0.830  |         [o  |  0.728
  mcc                         0.939  0.926 to 0.950  |           o |  0.751
  cohen_kappa                 0.938  0.923 to 0.949  |           o |  0.720
Requested
  min(recall@*)               0.160  0.101 to 0.271  | [o]         |  -
  gps(recall@*, precision@D)  0.488  0.343 to 0.605  |    [-o]     |  -
NOTE     The lowest of several values is another quantity than the value that
         came out lowest: which one would was not known beforehand. So its upper
         limit holds for all of them together, and lies further out than that of
         one value that was chosen beforehand.

  actual, predicted as    A    B    C   D      n
  A                     800    .    .   .    800
  B                       .  600    .   .    600
  C                       .    .  500   .    500
  D                      40   24   20  16    100
  total                 840  624  520  16  2,000

  class    n  recall  95 % interval    0     .25    .5     .75     1   precision
  D      100  0.160   0.101 to 0.244  |   [o--]                     |  1.000
  A      800  1.000   0.995 to 1.000  |                            o|  0.952
  B      600  1.000   0.994 to 1.000  |                            o|  0.962
  C      500  1.000   0.992 to 1.000  |                            o|  0.962
NO VALUE 13 metrics. likelihood_ratio_positive@D: class 'D' has no false
         positive, so the ratio is infinite. 12 more; reasons in "undefined".
MORE     JSON has all metrics. "intervals": "all" adds the missing limits.
"""


def evaluated(matrix: list[list[Any]], labels: list[str] | None = None, **members: Any) -> Json:
    """An evaluation as it is answered."""
    given = {"kind": "confusion_matrix", "matrix": matrix, **({} if labels is None else {"labels": labels})}
    body = {"model": {"name": "tumor-rf", "version": "7"}, "dataset": {"name": "hartwig", "split": "test"}, **members}
    new = parse_value({**body, "input": given}, EvaluationRequest).to_domain()
    found: Json = json.loads(write_json(evaluate_alone(new, None)[0]))
    return found


@cache
def written(name: str) -> list[tuple[str, Json]]:
    """Recorded answers of one kind, some of each form: evaluations, comparisons, checks or leaderboards."""
    tells: Mapping[str, Callable[[Json], bool]] = {
        "evaluation": lambda body: "per_class" in body,
        "comparison": lambda body: "rank_agreement" in body or "average_ranks" in body,
        "check": lambda body: "exit_code" in body and "results" in body,
        "leaderboard": lambda body: "winner" in body,
        "slices": lambda body: "slices" in body and "ranges" in body,
    }
    found: dict[Any, list[tuple[str, Json]]] = {}
    for group in GROUPS:
        for call, answer in read_answers(group).items():
            body = answer["body"]
            if isinstance(body, dict) and answer["status"] < 300 and tells[name](body):
                found.setdefault(form(body), []).append((f"{group}/{call}", body))
    # There are ten times as many evaluations as others.
    return [one for alike in found.values() for one in (alike[:4] if name == "evaluation" else alike)]


def form(body: Json) -> Any:
    """The members of an answer, and what kind of input it is about."""
    given = body.get("input", {})
    return (tuple(body), given.get("kind"), min(given.get("n_classes") or 0, 4))


def test_the_report_of_the_paper() -> None:
    asked = {"metrics": ["min(recall@*)", "gps(recall@*, precision@D)"]}
    assert write_text(EVALUATION.document(evaluated(PAPER, list("ABCD"), options=asked)), Style()) == REPORT


def test_a_value_of_many_digits_does_not_touch_its_limits() -> None:
    line = next(
        line
        for line in write_text(EVALUATION.document(evaluated([[391900, 12], [7922, 166]])), Style()).splitlines()
        if line.startswith("  specificity")
    )
    assert re.search(r"0\.99997  0\.9999\d to 0\.9999\d +\|", line)


def test_a_leaderboard_says_among_whom_the_best_model_is() -> None:
    """By the set that has the best with the level; where that is not known, by who is worse than the first."""
    body = dict(copy.deepcopy(next(body for _, body in written("leaderboard") if len(body["items"]) >= 4)))
    items = body["items"] = body["items"][:4]
    body["winner"] = {**body["winner"], "among": 4}
    for one, may, worse in zip(items, (True, False, True, False), (False, False, False, True), strict=True):
        one |= {"rank": 1, "may_be_best": may, "separable_from_best": worse}

    def headings() -> list[str]:
        return [str(group.title) for group in leaderboard_table(body).groups if group.rows]

    assert headings() == [
        "The best model is one of these 2, with 95 % confidence",
        "Not the best, with 95 % confidence",
    ]
    body["winner"]["among"] = 300
    assert headings()[0] == "The best of these models is one of these 2, with 95 % confidence"
    body["winner"]["among"] = 4
    items[2]["may_be_best"] = False
    assert headings()[0] == "The best model, with 95 % confidence"
    for one in items:
        one["may_be_best"] = None
    assert headings() == [
        f"{said}, with 95 % confidence" for said in ("Not shown to be worse than the first", "Worse than the first")
    ]
    items[3] |= {"rank": None, "separable_from_best": None}
    items[2]["separable_from_best"] = None
    assert headings()[1:] == ["Whether they may be the best is not known", "Without a value"]


@pytest.mark.parametrize(
    ("kind", "noun", "least"),
    [
        ("evaluation", EVALUATION, 15),
        ("comparison", COMPARISON, 15),
        ("check", CHECK, 15),
        ("leaderboard", LEADERBOARD, 15),
        ("slices", SLICES, 10),
    ],
)
def test_every_recorded_answer_fits(kind: str, noun: AnswerKind, least: int) -> None:
    answers = written(kind)
    assert len(answers) >= least
    for (name, body), width in product(answers, (60, 80)):
        lines = write_text(noun.document(body), Style(width)).split("\n")
        assert lines.pop() == "", name
        # Sentences take more lines where those are shorter.
        assert 1 <= len(lines) <= (60 if width >= 80 else 72), (name, len(lines))
        # A number or a name that is too long stands out rather than being cut.
        long = [line for line in lines if columns_of(line) > width and not re.search(r"\S{15}", line)]
        assert width < 80 or not long, (name, long)
        assert not [line for line in lines if line != line.rstrip()], name


@pytest.mark.parametrize("classes", [2, 5, 35, 200])
def test_any_number_of_classes_is_a_page(classes: int) -> None:
    matrix = [[50 if row == column else (row + column) % 3 for column in range(classes)] for row in range(classes)]
    answer = evaluated(matrix, [f"class of tissue number {k}" for k in range(classes)])
    lines = write_text(EVALUATION.document(answer), Style()).split("\n")
    assert len(lines) <= 60
    assert max(map(columns_of, lines)) <= 80
    assert len(write_markdown(EVALUATION.document(answer))) < 60_000
    assert len(json.dumps(answer["headline"])) <= 2048


@pytest.mark.parametrize("classes", [6, 7])
def test_matrices_of_long_names_fit(classes: int) -> None:
    labels = [f"{'abcdefg'[place]}-adenocarcinoma" for place in range(classes)]
    text = write_text(EVALUATION.document(evaluated((np.eye(classes, dtype=int) * 800 + 1).tolist(), labels)), Style())
    assert "actual, predicted as  a-" in text
    assert max(map(columns_of, text.splitlines())) <= 80


def test_a_matrix_that_does_not_fit_gives_way_to_its_mistakes() -> None:
    """Of seven classes and a thousand million samples the largest mistakes take the place of the counts."""
    counts = np.eye(7, dtype=int) * 800_000_000 + 100_000_000
    document = EVALUATION.document(evaluated(counts.tolist(), list("ABCDEFG")))
    text = write_text(document, Style())
    assert max(map(columns_of, text.splitlines())) <= 80
    assert "actual, predicted as" not in text
    assert re.search(r"most frequent mistakes +taken for .*\n  A +B +100,000,000 of 1,500,000,000 ", text)
    assert "actual, predicted as" in write_text(document, Style(200))


def test_names_beside_a_large_matrix_are_told_apart() -> None:
    """A page cuts long ones where they are alike, as a text does."""
    labels = [f"Neoplasm of the respiratory tract, histological subtype {place}" for place in range(12)]
    page = write_page(EVALUATION.document(evaluated((np.eye(12, dtype=int) * 20 + 1).tolist(), labels))).decode()
    matrix = page.partition('class="cm cm35"')[2].partition("</table>")[0]
    names = re.findall(r'<th scope="row"><bdi>(.*?)</bdi>', matrix)
    assert len({*names}) == 12
    assert max(map(len, names)) == 28


def test_a_long_title_goes_on_in_the_next_line() -> None:
    model, dataset = {"name": "of the team in Munich " * 3, "version": "3"}, {"name": "of a hospital " * 3}
    answer = evaluated(PAPER, model=model, dataset=dataset)
    lines = write_text(EVALUATION.document(answer), Style()).splitlines()
    assert max(map(columns_of, lines)) <= 80
    assert " ".join(lines[:2]).endswith("3 on of a hospital of a hospital of a hospital")


def test_long_names_leave_room_for_the_rest() -> None:
    """Findings that name long names are counted where more of them would be too long; the gravest one stays."""
    labels = [f"{place} is a name of {'very ' * 12}many words" for place in range(10)]
    counts = np.eye(10, dtype=int) * 3 + 1
    counts[:, 0] += counts[:, 9] + 9
    counts[:, 9] = 0
    answer = evaluated(counts.tolist(), labels)
    text = write_text(EVALUATION.document(answer), Style())
    assert len(text.splitlines()) <= 60
    assert text.splitlines()[1].startswith("CRITICAL Class")
    assert f"{len(answer['findings']) - 1} more: in the JSON" in text


def test_pictures_are_ascii_unless_asked_otherwise() -> None:
    answer = evaluated(PAPER)
    assert write_text(EVALUATION.document(answer), Style()).isascii()
    assert "├──●─┤" in write_text(EVALUATION.document(answer), Style(unicode=True))


HOSTILE = ["\x1b[31mred", "a|b`c``d", "=1+1", "[link](http://x)", "<script>", "漢字漢字", "@everyone", "-2", "```"]


def test_names_are_data() -> None:
    size = len(HOSTILE)
    matrix = [[5 if row == column else 1 for column in range(size)] for row in range(size)]
    answer = evaluated(PAPER)
    # The wall refuses some of these names; texts must not rely on it.
    hostile = {
        **evaluated(matrix),
        "model": {"name": HOSTILE[0], "version": HOSTILE[4]},
        "dataset": {"name": HOSTILE[3], "split": None},
    }
    hostile["input"] = {**hostile["input"], "labels": HOSTILE}
    hostile["per_class"] = dict(zip(HOSTILE, hostile["per_class"].values(), strict=True))
    text = write_text(EVALUATION.document(hostile), Style())
    assert "\x1b" not in text
    assert r"\x1b[31mred" in text
    markdown = write_markdown(EVALUATION.document(hostile))
    spans = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", markdown)
    assert not [label for label in ("<script>", "[link]", "@everyone", "a|b") if label in spans]
    cells = [cell for line in csv.reader(io.StringIO(write_csv(EVALUATION.document(hostile)))) for cell in line]
    assert "'=1+1" in cells
    assert not [cell for cell in cells if cell.startswith(("=", "@")) or re.match(r"[+-]\D", cell)]
    assert answer["input"]["labels"] == ["0", "1", "2", "3"]


def test_csv_has_every_value_exactly() -> None:
    answer = evaluated(PAPER, list("ABCD"), options={"metrics": ["recall@*", "min(recall@*)"]})
    lines = list(csv.DictReader(io.StringIO(write_csv(EVALUATION.document(answer)))))
    assert list(lines[0]) == ["scope", "class", "group", "metric", "value", "low", "high", "undefined"]
    found = {(one["scope"], one["class"], one["group"], one["metric"]): one for one in lines}
    assert len(found) == len(lines)
    for group, metrics in answer["metrics"].items():
        for key, value in metrics.items():
            line = found["overall", "", group, key]
            assert (line["value"] == "") == (value is None)
            assert value is None or float(line["value"]) == value
            assert bool(line["undefined"]) == (value is None)
    low = answer["intervals"]["recall@D"]["low"]
    assert float(found["class", "D", "prevalence_insensitive", "recall"]["low"]) == low
    assert float(found["requested", "D", "", "recall@*"]["value"]) == 0.16
    assert float(found["requested", "D", "", "recall@*"]["low"]) == low
    assert "infinite" in found["class", "D", "prevalence_sensitive", "likelihood_ratio_positive"]["undefined"]


def test_csv_of_two_classes_has_the_limits_and_reasons_of_the_positive_one() -> None:
    """As texts and pages do, which say the same of a metric without a class."""
    answer = evaluated([[90, 10], [5, 0]], ["fine", "ill"])
    lines = list(csv.DictReader(io.StringIO(write_csv(EVALUATION.document(answer)))))
    overall = {one["metric"]: one for one in lines if one["scope"] == "overall" and one["group"] in SHOWN_HERE}
    of_class = {one["metric"]: one for one in lines if one["class"] == "ill" and one["group"] in SHOWN_HERE}
    assert float(overall["recall"]["high"]) == answer["intervals"]["recall@ill"]["high"]
    for key in ("recall", "specificity", "precision", "diagnostic_odds_ratio", "yule_q"):
        assert {**overall[key], "scope": "class", "class": "ill"} == of_class[key]
    answer = evaluated([[0, 0], [9, 31]], ["fine", "ill"])
    (why,) = (one["reason"] for one in answer["undefined"] if one["metric"] == "*")
    lines += csv.DictReader(io.StringIO(write_csv(EVALUATION.document(answer))))
    assert [one for one in lines if one["undefined"] == why]
    assert not [one for one in lines if one["undefined"] == "no value"]


SHOWN_HERE = ("prevalence_insensitive", "prevalence_sensitive")


def test_what_follows_a_reason_stays_in_its_column() -> None:
    lines = write_text(EVALUATION.document(evaluated([[0, 0], [9, 31]], ["fine", "ill"])), Style()).splitlines()
    heads, row = (next(one for one in lines if one.startswith(f"  {name} ")) for name in ("metric", "h_mean"))
    assert row.index("same") == heads.index("balanced")


@pytest.mark.parametrize(
    ("kind", "noun"),
    [
        ("evaluation", EVALUATION),
        ("comparison", COMPARISON),
        ("check", CHECK),
        ("leaderboard", LEADERBOARD),
    ],
)
def test_tables_have_one_number_of_columns(kind: str, noun: AnswerKind) -> None:
    for name, body in written(kind):
        for block in write_markdown(noun.document(body)).split("\n\n"):
            rows = [re.sub(r"\\\|", "", line).count("|") for line in block.split("\n") if line.startswith("| ")]
            assert len(set(rows)) <= 1, name
        lines = list(csv.reader(io.StringIO(write_csv(noun.document(body)))))
        assert len({len(line) for line in lines}) == 1, name
        assert len(lines) > 1 or not body.get("items", True), name


def test_metrics_are_spoken_of_by_their_names() -> None:
    spoken_of = {
        "mcc": "Matthews correlation coefficient",
        "recall@D": "recall of D",
        'precision@"a b"': "precision of a b",
        "recall@*": "recall of every class",
        "min(recall@*)": "lowest recall of any class",
        "ndcg_at_k(k=10)": "normalised discounted cumulative gain at 10",
        "f_beta(beta=2)@A": "F-beta (beta=2) of A",
    }
    assert {text: spoken(text) for text in spoken_of} == spoken_of
    # Of several metrics, of slices, and what is no metric.
    for text in ("recall@A - recall@B", "mean(recall@*)", 'recall@A[site="B"]', "min(recall@A)", "at least so", "of"):
        assert (spoken(text), titled(text)) == (text, text)
    assert titled("min(recall@*)") == "Lowest recall of any class"
    said = naming("h_mean is 0.4; that of recall@D and h_means is lower. f1@a.b falls.", ["h_mean", "recall@D", "f1@a"])
    assert (
        in_names(said) == "Harmonic mean of the recalls is 0.4; that of recall of D and h_means is lower. f1@a.b falls."
    )
    assert "".join(said) == "h_mean is 0.4; that of recall@D and h_means is lower. f1@a.b falls."
    said = naming('Those of "roc_auc@"a b"", "f1@D" and log_loss are rough.', ["roc_auc", "f1", "log_loss"])
    assert in_names(said) == "Those of area under the ROC curve of a b, F1 of D and log loss are rough."
    assert metric_sentence('precision@"a b"') == metric_sentence("precision")


def test_what_is_not_settled_against_the_best_run_may_be_as_good() -> None:
    """The set that has the best run looks on one side; beside limits that hold 0 it would read as a contradiction."""
    pairs = [("a", "b", -0.003, 0.049), ("a", "c", 0.01, 0.2), ("b", "c", -0.1, 0.2), ("a", "d", None, None)]
    # Limits on one side of what has no end on the other.
    pairs += [("a", "e", -0.1, None), ("f", "a", None, 0.1), ("a", "g", 0.1, None), ("h", "a", None, -0.1)]
    differences = [{"a": a, "b": b, "low": low, "high": high} for a, b, low, high in pairs]
    metric = {"best": "a", "may_be_best": ["a"], "differences": differences}
    assert may_be_as_good(metric) == {"b", "e", "f"}
    assert may_be_as_good({**metric, "may_be_best": ["a", "d"]}) == {"b", "d", "e", "f"}


def test_a_pair_the_other_way_round_has_the_chances_of_the_other_run() -> None:
    pair = {"a": "a", "b": "b", "difference": 0.25, "low": -0.125, "high": 0.5, "verdict": "better"}
    pair |= {"probability_a_better": 0.75, "probability_equivalent": 0.125}
    other = {"difference": -0.25, "low": -0.5, "high": 0.125, "verdict": "worse", "probability_a_better": 0.125}
    assert turned(pair, "b") == {**pair, **other}
    assert turned(pair, "a") == pair
    assert str(turned({**pair, "difference": 0.0}, "b")["difference"]) == "0.0"


def test_a_metric_that_changed_twice_held_until_the_first_time() -> None:
    items = [{"evaluation": str(day), "version": None, "created_at": f"2026-11-0{day}T00:00:00Z"} for day in (1, 2, 3)]
    changes = [{"metric": "h_mean", "to": "2"}, {"metric": "h_mean", "to": "3"}]
    assert "".join(_heading({"items": items, "changes": changes})) == "h_mean held until 2 Nov 2026"


def test_two_spaces_at_least_are_between_a_title_and_its_facts() -> None:
    for length, lines in ((57, ["t" * 57 + "  f"]), (58, ["t" * 58, " " * 59 + "f"])):
        document = Document(title="t" * length, facts=[("", "f")], records=((), ()))
        assert write_text(document, Style(60)).splitlines() == lines


def test_of_slices_without_counts_what_is_worse_stands_first_and_what_is_better_last() -> None:
    said = {"undecided": -0.3, "better": 0.2, "worse": -0.1}
    slices: list[Any] = [
        {"where": verdict, "metrics": {"h_mean": {"difference": {"value": gap, "verdict": verdict}}}}
        for verdict, gap in said.items()
    ]
    assert [one["where"] for one in _ordered(slices, "h_mean")] == ["worse", "undecided", "better"]
    for one, beyond in zip(slices, (1.0, -2.0, 3.0), strict=True):
        one["metrics"]["h_mean"]["counts"] = {"beyond": beyond}
    ordered = [one["metrics"]["h_mean"]["counts"]["beyond"] for one in _ordered(slices, "h_mean")]
    assert ordered == [3.0, 1.0, -2.0]


def test_slices_without_p_say_why() -> None:
    body = copy.deepcopy(next(body for _, body in written("slices") if len(body["slices"]) > 1))
    first, *others = (one["metrics"] for one in body["slices"])
    name = next(iter(first))
    for metrics in (first, *others):
        metrics[name]["difference"].pop("reason", None)
    first[name]["difference"] |= {"value": 0.1, "p_adjusted": None, "reason": "there are few samples"}
    document = SLICES.document(body)
    for text in (write_text(document, Style()), write_markdown(document), write_page(document).decode()):
        assert "1 slice without p: there are few samples." in text
    values = [row for row in csv.DictReader(io.StringIO(write_csv(document))) if row["metric"] == name]
    assert [row["reason"] for row in values if row["reason"].startswith("there")] == ["there are few samples"]


def test_marks_of_prevalence_are_those_of_the_metric() -> None:
    """A ranking, and an expression of several metrics, have neither a ring nor a dot."""
    metrics = "accuracy", "h_mean", "recall@A", "ndcg_at_k(k=10)", "recall@A - recall@B", "nonsense"
    assert [moves_with_prevalence(one) for one in metrics] == [True, False, False, None, None, None]


def test_every_recorded_answer_has_a_page() -> None:
    for noun, kind in (
        ("evaluation", EVALUATION),
        ("comparison", COMPARISON),
        ("check", CHECK),
        ("leaderboard", LEADERBOARD),
    ):
        for name, body in written(noun):
            answer = {**body, "created_at": "2026-11-21T20:57:00Z"} if "created_at" in body else body
            page = write_page(kind.document(answer)).decode()
            assert page.startswith("<!doctype html>"), name
            for one in said_once(body.get("findings") or ()):
                of_rules = filter(None, (each["rule"].get("metric") for each in body.get("results", ())))
                keys = metrics_of(body) if "per_class" in body else body.get("metrics") or of_rules
                said = in_names(naming(one["message"], keys))
                assert str(escape(said.split(". ")[0])) in page, name


def test_a_comparison_says_what_its_numbers_say() -> None:
    for name, body in written("comparison"):
        if "average_ranks" in body or len(body["evaluations"]) != 2:
            continue
        said = outcomes(body)
        for metric, found in body["metrics"].items():
            pair = found["differences"][0]
            sure = (pair["low"] is not None and pair["low"] > 0) or (pair["high"] is not None and pair["high"] < 0)
            little = any(metric in said[f"{word}, too little to matter"] for word in ("Better", "Worse"))
            if metric in said["Better"] or metric in said["Worse"] or little:
                assert sure, (name, metric)
                assert (pair["probability_equivalent"] > 0.5) is little, (name, metric)
            if metric in said["The same"]:
                assert pair.get("identical") or pair["probability_equivalent"] >= 0.95, (name, metric)


@pytest.mark.parametrize(
    ("models", "heads"),
    [
        (({"name": "forest", "version": "1"}, {"name": "forest", "version": "2"}), ["1", "2"]),
        (({"name": "oak", "version": "1"}, {"name": "elm", "version": "1"}), ["oak", "elm"]),
        (({"name": "oak", "version": None}, {"name": "elm", "version": "1"}), ["oak", "elm"]),
        (({"name": "oak", "version": "2"}, {"name": "elm", "version": "1"}), ["oak", "elm"]),
    ],
)
def test_columns_of_a_comparison_are_told_apart(models: tuple[Json, Json], heads: list[str]) -> None:
    """By versions of one model, by the names of two."""
    bodies = [one for _, one in written("comparison") if "average_ranks" not in one and len(one["evaluations"]) == 2]
    body = copy.deepcopy(bodies[0])
    for run, model in zip(body["evaluations"], models, strict=True):
        run["model"] = model
    line = next(
        line for line in write_text(COMPARISON.document(body), Style()).splitlines() if line.rstrip().endswith("worse")
    )
    assert line.split()[1:3] == heads


def test_a_run_without_any_value_has_its_column() -> None:
    body = copy.deepcopy(next(one for _, one in written("comparison") if len(one.get("evaluations", ())) == 2))
    for metric in body["metrics"].values():
        metric["values"][1] = None
    for run, name in zip(body["evaluations"], ("oak", "elm"), strict=True):
        run["model"] = {"name": name, "version": None}
    heads = [line for line in write_text(COMPARISON.document(body), Style()).splitlines() if line.endswith("worse")]
    assert heads[0].split()[1:3] == ["oak", "elm"]


def test_long_names_of_runs_are_letters_above_columns() -> None:
    """Cut to six letters nobody knows them again."""
    body = copy.deepcopy(next(one for _, one in written("comparison") if len(one.get("evaluations", ())) == 2))
    for run, name in zip(body["evaluations"], ("boosting-with-text", "boosting-without"), strict=True):
        run["model"] = {"name": name, "version": None}
    lines = write_text(COMPARISON.document(body), Style()).splitlines()
    (place,) = [place for place, line in enumerate(lines) if line.endswith("worse")]
    assert lines[place - 2 : place] == ["  A: boosting-with-text", "  B: boosting-without"]
    assert lines[place].split()[1:3] == ["A", "B"]


def test_a_check_begins_with_its_verdict_and_exit_code() -> None:
    for name, body in written("check"):
        first = write_text(CHECK.document(body), Style()).split("\n")[0]
        assert first.startswith(f"{body['verdict'].upper()} (exit {body['exit_code']})  gate "), name
        markdown = write_markdown(CHECK.document(body)).split("\n")
        assert markdown[0].startswith("<!-- prevail gate="), name
        assert f" {body['verdict']} (exit {body['exit_code']}): gate `" in markdown[1], name


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"metric": "h_mean", "min": 0.8, "bound": "lower"}, "h_mean >= 0.8"),
        ({"metric": "h_mean", "min": 0.8, "bound": "upper"}, "h_mean not surely below 0.8"),
        ({"metric": "error_rate", "max": 0.1, "bound": "lower"}, "error_rate <= 0.1"),
        ({"metric": "error_rate", "max": 0.1, "bound": "value"}, "error_rate <= 0.1, by its value alone"),
        ({"metric": "mcc", "not_worse_than": "baseline", "margin": 0.01, "bound": "lower"}, "mcc not worse by 0.01"),
        (
            {"metric": "mcc", "not_worse_than": "baseline", "margin": 0.05, "bound": "upper"},
            "mcc not surely worse by 0.05",
        ),
        ({"metric": "mcc", "better_than": "baseline", "bound": "lower"}, "mcc better"),
        (
            {"metric": "mcc", "equivalent_to": "baseline", "margin": 0.02, "bound": "lower"},
            "mcc the same within 0.02",
        ),
        ({"minimum_samples": 1500}, "at least 1,500 samples"),
        ({"minimum_samples": 1}, "at least 1 sample"),
    ],
)
def test_rules_in_words(rule: Json, words: str) -> None:
    assert rule_text(rule) == words


@pytest.mark.parametrize(
    ("metric", "demand", "limit"),
    [
        ("accuracy", "better_than", (0.05, True)),
        ("accuracy", "not_worse_than", (-0.05, True)),
        ("error_rate", "better_than", (-0.05, False)),
        ("error_rate", "not_worse_than", (0.05, False)),
    ],
)
def test_limits_of_differences_are_on_the_side_that_is_asked(
    metric: str, demand: str, limit: tuple[float, bool]
) -> None:
    rule = {"metric": metric, demand: "baseline", "margin": 0.05}
    assert limits_of({"rule": rule, "quantity": "difference"}) == [limit]


@pytest.mark.parametrize(
    ("known", "sign", "ends"),
    [
        ([0.02, 0.05], False, (0.0, 1.0)),
        ([0.02, 0.05], True, (-0.01, 0.06)),
        ([-0.03, 0.01], True, (-0.04, 0.02)),
        ([1.5, 0.2], False, (0.0, 2.0)),
        ([3.0, 8.0], False, (0.0, 9.0)),
    ],
)
def test_an_axis_has_round_ends_and_room_at_both_sides(
    known: list[float], sign: bool, ends: tuple[float, float]
) -> None:
    assert axis_of(known, sign=sign) == pytest.approx(ends)


def test_of_single_classes_the_largest_differences_are_looked_at_first() -> None:
    found = most_telling([(True, 0.1), (False, 0.01), (True, -0.5), (True, 0.2), (False, -0.02)], 3)
    assert found == ([1, 2, 4], [0, 3])


def test_a_track_shows_the_value_over_its_limits() -> None:
    track = Track.within(26, Style())
    assert track.scale == " 0   .25  .5   .75   1"
    assert track.drawn(Estimate(0.432, 0.304, 0.560)) == "|      [--o-]         |"
    assert track.drawn(Estimate(0.5)) == "|          o          |"
    assert track.drawn(Estimate(1.5, 0.0, 1.0)) == ""
    assert Track.within(10, Style()).steps == 0


def test_labels_are_cut_where_they_differ_least() -> None:
    same_start = [f"Head and neck: kind {k} of tissue" for k in range(5)]
    cut = shortened(same_start, 20)
    assert len(set(cut)) == 5
    assert max(map(columns_of, cut)) <= 20
    assert shortened(["a", "b"], 3) == ["a", "b"]


def test_wide_characters_take_two_columns() -> None:
    assert columns_of("漢字") == 4
    assert columns_of("e\u0301") == 1
    assert printable("a\u202eb\n") == r"a\u202eb\x0a"


def test_a_number_stays_with_its_unit() -> None:
    assert wrapped("A", "it is 16 % of", 16) == ["A        it is", "         16 % of"]


def test_code_spans_hold_any_name() -> None:
    assert code("a`b") == "``a`b``"
    assert code("`") == "`` ` ``"
    assert code("a|b") == r"`a\|b`"


def test_a_list_has_its_classes_limits_and_reasons_however_it_is_written() -> None:
    asked = ["recall@ *", "tpr@*", "(precision@*)", "f_beta(beta=2.0)@*"]
    answer = evaluated([[5, 1, 0], [0, 0, 0], [2, 3, 0]], ["x y", "B", "C"], options={"metrics": asked})
    intervals = answer["intervals"]
    assert intervals['tpr@"x y"'] == intervals['recall@"x y"']
    rows = [row for row in csv.reader(io.StringIO(write_csv(EVALUATION.document(answer)))) if row[0] == "requested"]
    ends = {(metric, label): (low, high) for _, label, _, metric, _, low, high, _ in rows}
    for given, canonical in zip(asked, ("recall", "recall", "precision", "f_beta(beta=2)"), strict=True):
        one = intervals[f'{canonical}@"x y"']
        assert ends[given, "x y"] == (str(one["low"]), str(one["high"]))
    text = write_text(EVALUATION.document(answer), Style(width=120))
    assert re.search(r'^  tpr@"x y" +0\.833  0\.436 to 0\.970 ', text, re.MULTILINE)
    assert re.search(r"^  recall@C +0\.000  0\.000 to 0\.434 ", text, re.MULTILINE)
    assert re.search(r"^  tpr@B +- +-\n +class 'B' has no actual samples", text, re.MULTILINE)
    assert "no value " not in text


def text_and_markdown(matrix: list[list[Any]], **members: Any) -> tuple[str, str]:
    document = EVALUATION.document(evaluated(matrix, **members))
    return write_text(document, Style()), write_markdown(document)


def test_tables_have_the_classes_that_matter_and_count_the_others() -> None:
    # How few cases a class has that accuracy hides is said once.
    assert "have fewer than" not in text_and_markdown([[95, 0], [18, 2]])[0]
    lacking, _ = text_and_markdown([[5, 1, 0], [0, 0, 0], [2, 3, 0]])
    assert re.search(r"\n  2 +5 .*\n  0 +6 .*\n  1 +0  - ", lacking)
    eye = np.eye(62, dtype=int) * 20 + 1
    assert re.search(r"\n  most frequent mistakes .*\n  0 +1 +1 of 29 ", text_and_markdown(eye[:9, :9].tolist())[0])
    assert "2 more classes: in the JSON." in text_and_markdown(eye.tolist())[1]


def test_rates_have_no_numbers_of_samples() -> None:
    given = {"kind": "confusion_matrix", "matrix": [[0.4, 0.1], [0.2, 0.3]], "normalized": True}
    new = parse_value({"input": given}, EvaluationRequest).to_domain()
    text = write_text(EVALUATION.document(json.loads(write_json(evaluate_alone(new, None)[0]))), Style())
    assert re.search(r"\n  class +recall .*\n  1 +0\.600 ", text)


def test_a_history_has_the_newest_first_and_what_became_of_it() -> None:
    items = [
        {"evaluation": f"e{day}", "version": None, "created_at": f"2026-11-0{day}T00:00:00Z", "n_samples": 10}
        | {"metrics": {"accuracy": {"value": value, "low": None, "high": None, "expected": None}}}
        for day, value in ((1, 0.5), (2, 0.9))
    ]
    change = {"metric": "accuracy", "from": "e1", "to": "e2", "before": 0.5, "after": 0.9, "message": "accuracy rose"}
    change["difference"] = {"value": 0.4, "low": 0.1, "high": 0.6, "p_adjusted": 0.01}
    answer = {"model": "m", "dataset": {"name": "d"}, "items": items, "changes": [change], "notes": []}
    text = write_text(history_document({**answer, "next_cursor": None}), Style())
    assert re.search(
        r"\n  evaluation +value  change\naccuracy\n  2 Nov 2026 +0\.900 +rose\n  1 Nov 2026 +0\.500\n", text
    )


def test_labels_have_the_same_texts() -> None:
    given = {
        "kind": "multilabel",
        "labels": ["sport", "war", "chess"],
        "y_true": [["sport"], ["war", "sport"], [], ["chess"], ["war"]],
        "y_pred": [["sport"], ["sport"], [], ["war"], ["war"]],
    }
    new = parse_value({"input": given}, EvaluationRequest).to_domain()
    answer = json.loads(write_json(evaluate_alone(new, None)[0]))
    text = write_text(EVALUATION.document(answer), Style())
    assert "5 samples, 3 labels" in text
    assert re.search(r"^  subset_accuracy +0\.600 ", text, re.MULTILINE)
    assert re.search(r"  label .*\n  chess +1 +0\.000 ", text)
    assert "`hamming_loss`" in write_markdown(EVALUATION.document(answer))
    assert "overall,,prevalence_sensitive,subset_accuracy,0.6," in write_csv(EVALUATION.document(answer))


def test_rankings_have_the_same_texts() -> None:
    given = {
        "kind": "ranking",
        "query_ids": ["a", "a", "a", "b", "b", "c", "c"],
        "relevance": [1, 0, 2, 0, 1, 1, 0],
        "scores": [0.9, 0.8, 0.1, 0.7, 0.2, 0.3, 0.1],
    }
    new = parse_value({"input": given}, EvaluationRequest).to_domain()
    answer = json.loads(write_json(evaluate_alone(new, None)[0]))
    text = write_text(EVALUATION.document(answer), Style())
    assert text.split("\n")[0].endswith("3 queries")
    assert re.search(r"^  metric +value .*\n  ndcg_at_k\(k=10\) ", text, re.MULTILINE)
    assert re.search(r"^  precision_at_k\(k=10\) +0\.133 ", text, re.MULTILINE)
    # The queries say of which metric their values are.
    assert re.search(r"^  query +ndcg_at_k\(k=10\) +retrieved +relevant$", text, re.MULTILINE)
    assert list(answer["headline"]["metrics"])[-1] == "mean_reciprocal_rank"
    assert "`ndcg_at_k(k=10)`" in write_markdown(EVALUATION.document(answer))


def test_points_without_classes_have_the_metrics_that_they_have() -> None:
    """Nothing of them is a headline, and yet there are values."""
    given = {"kind": "clustering", "y_pred": [0, 0, 1, 1], "features": [[0.0], [0.1], [1.0], [1.2]]}
    new = parse_value({"input": given}, EvaluationRequest).to_domain()
    document = EVALUATION.document(json.loads(write_json(evaluate_alone(new, None)[0])))
    text = write_text(document, Style())
    assert re.search(r"\n\n  metric +value .*\n  silhouette +0\.856 ", text)
    assert "`silhouette`" in write_markdown(document)
    assert "Silhouette is 0.856." in write_page(document).decode()


def test_decisions_that_are_no_classes_have_no_section_of_metrics() -> None:
    labels = {"labels": ["well", "ill"], "decisions": ["wait", "test", "treat"]}
    given = {"kind": "confusion_matrix", "matrix": [[700, 180, 20], [10, 30, 60]], **labels}
    new = parse_value({"input": given}, EvaluationRequest).to_domain()
    document = EVALUATION.document(json.loads(write_json(evaluate_alone(new, None)[0])))
    assert re.search(r"1,000 samples\n\n  decision +n ", write_text(document, Style()))
    page = write_page(document).decode()
    assert "What is decided are no classes, so that no metric of classes exists." in page
    assert 'id="metrics"' not in page


def test_causes_of_what_was_compared_at_one_prevalence_are_of_what_was_observed() -> None:
    """Accuracy can fall while it is better at one prevalence."""
    recorded = next(one for _, one in written("comparison") if len(one.get("evaluations", ())) == 2)
    body = dict(copy.deepcopy(recorded))
    name, metric = next(iter(body["metrics"].items()))
    body["findings"] = [{"code": "cause_of_difference", "severity": "note", "message": f"{name} fell by 0.002."}]
    body["findings"][0]["evidence"] = {"metric": name}
    for values, said in ((None, f"NOTE     {name} fell"), ([0.5, 0.502], f"NOTE     As observed, {name} fell")):
        metric["observed_values"] = values
        assert said in write_text(COMPARISON.document(body), Style())


def test_values_of_runs_are_never_cut() -> None:
    """The name above a column is at most six letters; a value may be longer."""
    body = copy.deepcopy(next(one for _, one in written("comparison") if len(one.get("evaluations", ())) == 2))
    for metric in body["metrics"].values():
        metric["values"] = [0.999999999, 1234.5]
    assert re.search(r" >0\.99999  1,234\.5  ", write_text(COMPARISON.document(body), Style()))


def test_leaderboards_count_what_their_metric_is_computed_from() -> None:
    metrics = ("ndcg_at_k(k=5)", "pooled_jaccard", "h_mean", "samples_f1", "gps(recall@A, precision@B)")
    assert [units_of(metric) for metric in metrics] == ["queries", "items", "samples", "samples", "samples"]
