"""Reports: one page that says what the answer says, loads nothing and runs nothing."""

import re
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.api.documents.comparison import folded
from app.api.documents.document import fitting
from app.domain.wording import PAGE
from app.services.processes import rendering
from tests.api.answers import FOUR_CLASSES, check_problem, create, evaluation, matrix_input
from tests.api.plots.world import HOSTILE, confused, keep_matrix
from tests.api.test_probabilities import make
from tests.api.test_tournaments import judge, keep_table
from tests.kernel.compare.test_across_datasets import SCORES

VOID = {"meta", "link", "br", "hr", "img", "input", "col", "path", "line", "circle", "rect"}
LOADING = {"src", "srcset", "action", "formaction", "background", "poster", "data", "ping", "xlink:href"}


class Page(HTMLParser):
    """A page taken apart: its elements, its texts, and whether all that is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def check_page(reply: httpx.Response) -> Page:
    """A page as it has to be: whole, loading and running nothing, with headings and tables for every reader."""
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    policy = reply.headers["content-security-policy"]
    assert policy.startswith("default-src 'none';")
    assert "script" not in policy
    page = Page(reply.text)
    assert not page.open
    for tag, attributes in page.elements:
        assert tag not in {"script", "iframe", "object", "embed", "base", "form"}, tag
        assert not [name for name in attributes if name.startswith("on") or name in LOADING], (tag, attributes)
        for name in ("href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:,")), attributes
        assert "url(http" not in (attributes.get("style") or "")
    assert "@import" not in reply.text
    identifiers = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(identifiers) == len(set(identifiers))
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert all(attributes.get("scope") for attributes in page.named("th"))
    assert len(page.named("caption")) == len(page.named("table"))
    assert all(one.get("aria-label") for tag, one in page.elements if one.get("role") in ("img", "region"))
    jumps = {(attributes.get("href") or "").removeprefix("#") for attributes in page.named("a")}
    assert jumps <= set(identifiers)
    return page


def report(client: httpx.Client, identifier: str, **parameters: Any) -> Page:
    return check_page(client.get(f"/v1/evaluations/{identifier}/report", params=parameters))


@pytest.fixture(scope="module")
def four(client: httpx.Client) -> str:
    source = matrix_input(FOUR_CLASSES, labels=["A", "B", "C", "D"])
    body = evaluation(input=source, tags={"stage": "candidate"}, options={"metrics": ["f1@*", "gps(recall@*)"]})
    return str(create(client, body)["id"])


@pytest.fixture(scope="module")
def two(client: httpx.Client) -> str:
    return str(create(client, evaluation(input=make(n=300, classes=2)))["id"])


def test_the_findings_and_the_values_are_those_of_the_answer(client: httpx.Client, four: str) -> None:
    page = report(client, four)
    answer = client.get(f"/v1/evaluations/{four}").json()
    assert "Class D is found in 16 of 100 cases" in page.text
    for key in ("h_mean", "balanced_accuracy"):
        one = answer["headline"]["metrics"][key]
        assert PAGE.interval(one["low"], one["high"]) in page.text
    assert PAGE.value(answer["metrics"]["at_balanced_prevalence"]["accuracy"])[:4] in page.text
    assert "gps(recall@*)" in page.text
    assert "candidate" in page.text
    first = answer["undefined"][0]
    # Its class stands beside it.
    assert first["class"] == "D"
    assert first["reason"].replace("class 'D'", "he class") in page.text
    assert "D A 40 of 100 40 %" in page.text


def test_by_accept_the_same_page_is_answered(client: httpx.Client, four: str) -> None:
    page = client.get(f"/v1/evaluations/{four}/report").content
    browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    assert client.get(f"/v1/evaluations/{four}", headers={"Accept": browser}).content == page
    json = client.get(f"/v1/evaluations/{four}", headers={"Accept": "text/html;q=0.5, application/json"})
    assert json.headers["content-type"] == "application/json"


def test_probabilities_have_their_figures_inside(client: httpx.Client, two: str) -> None:
    page = report(client, two)
    for title in ("ROC curve", "Precision-recall curve", "Reliability of the probabilities", "IMCP curve"):
        assert title in page.text
    drawn = [one for tag, one in page.elements if one.get("role") == "img"]
    assert len(drawn) == 6
    assert len([one for one in page.named("svg") if "fig" in (one.get("class") or "")]) == 6


def test_both_themes_are_in_one_page(client: httpx.Client, two: str) -> None:
    text = client.get(f"/v1/evaluations/{two}/report").text
    assert "--accent:light-dark(#0a5ea8,#7ab8f5)" in text
    assert 'stroke="var(--accent)"' in text
    assert 'data-theme="dark"' in client.get(f"/v1/evaluations/{two}/report?theme=dark").text
    check_problem(client.get(f"/v1/evaluations/{two}/report?theme=blue"), 422, "invalid_query")


@pytest.mark.parametrize("classes", [35, 200])
def test_many_classes(client: httpx.Client, classes: int) -> None:
    identifier = keep_matrix(client, classes)
    reply = client.get(f"/v1/evaluations/{identifier}/report")
    page = check_page(reply)
    assert f"{classes} classes" in page.text
    assert len(reply.content) < (400_000 if classes == 35 else 3_000_000)


def test_without_the_extra_the_page_has_tables_and_words(
    client: httpx.Client, two: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "find_spec", lambda _: None)
    page = report(client, two)
    assert "was installed without what draws pictures" in page.text
    assert not [one for one in page.named("svg") if "fig" in (one.get("class") or "")]
    assert "ROC curve of class 1." in page.text


def test_hostile_names_do_nothing(client: httpx.Client) -> None:
    body = evaluation(model=HOSTILE[0], dataset=HOSTILE[2], input=matrix_input(confused(4), labels=HOSTILE))
    identifier = create(client, {**body, "tags": {"a": "<b>&"}})["id"]
    page = report(client, identifier)
    assert HOSTILE[0] in page.text
    assert "{{ 7*7 }}" in page.text
    assert "\x1b" not in page.text
    other = create(client, evaluation(model='"><img src=x onerror=alert(1)>', input=matrix_input([[5, 1], [2, 4]])))
    third = create(client, evaluation(model="</style><script>", input=matrix_input([[5, 1], [3, 3]])))
    made = client.post("/v1/comparisons", json={"evaluations": [other["id"], third["id"]]}).json()["id"]
    check_page(client.get(f"/v1/comparisons/{made}/report"))


def test_other_kinds_have_a_page(client: httpx.Client) -> None:
    for source in (
        {
            "kind": "ranking",
            "query_ids": ["q", "q", "r", "r"],
            "relevance": [1, 0, 0, 1],
            "scores": [2.0, 1.0, 3.0, 1.0],
        },
        {"kind": "multilabel", "y_true": [["a"], ["b", "a"], []], "y_pred": [["a"], ["b"], ["b"]]},
        {"kind": "confusion_matrix", "matrix": [[0.5, 0.5], [0.1, 0.9]], "normalized": True},
    ):
        report(client, create(client, evaluation(input=source))["id"])
    forgotten = create(client, evaluation(input=make(n=60, classes=2), options={"retain": "none"}))["id"]
    assert "were not saved" in report(client, forgotten).text


def test_a_page_of_samples_of_one_class_says_what_cannot_be_drawn(client: httpx.Client) -> None:
    probabilities = [[0.5, 0.3, 0.2], [0.8, 0.1, 0.1], [0.2, 0.7, 0.1]]
    source = {"kind": "probabilities", "labels": ["a", "b", "c"], "y_true": [*"aaa"], "probabilities": probabilities}
    run = create(client, evaluation(input=source))["id"]
    page = client.get(f"/v1/evaluations/{run}/report")
    assert page.status_code == 200
    assert "Expected samples of this class and of another" in page.text
    assert "all at equal class prevalence" in page.text
    assert "simulator" not in client.get(f"/ui/evaluations/{run}").text
    check_problem(client.get(f"/v1/evaluations/{run}/plots/prevalence.svg"), 422, "no_figure")
    # Classes without samples have no quartiles, and no box.
    phi = client.get(f"/v1/evaluations/{run}/plots/phi.json")
    assert phi.status_code == 200
    assert "Class a has the lowest median phi" in phi.json()["description"]


def test_a_page_without_a_figure_does_not_blame_the_installation(client: httpx.Client) -> None:
    source = {"kind": "ranking", "query_ids": ["q", "q"], "relevance": [0, 0], "scores": [1.0, 0.5]}
    run = create(client, evaluation(input=source))["id"]
    for address in (f"/v1/evaluations/{run}/report", f"/ui/evaluations/{run}/figures"):
        page = client.get(address).text
        assert "Expected queries with a value" in page
        assert "installed without" not in page
    assert "cumulative gain at 10 has no value." in client.get(f"/ui/evaluations/{run}").text


def test_metrics_of_the_positive_class_say_why_they_have_no_value(client: httpx.Client) -> None:
    source = {"kind": "binary_counts", "tp": 3, "fn": 1, "fp": 0, "tn": 0}
    page = client.get(f"/ui/evaluations/{create(client, evaluation(input=source))['id']}").text
    row = page.partition("Specificity")[2].partition("</tr>")[0]
    assert "no actual samples" in row or "belongs to" in row, row


def test_what_is_not_there_has_no_page(client: httpx.Client) -> None:
    check_problem(client.get(f"/v1/evaluations/{uuid4()}/report"), 404, "not_found")
    check_problem(client.get(f"/v1/comparisons/{uuid4()}/report"), 404, "not_found")


# --- comparisons -----------------------------------------------------------------------------------------------------


def test_a_comparison_of_runs(client: httpx.Client, two: str) -> None:
    other = create(client, evaluation(model="other", input=make(n=200, classes=2, seed=4)))["id"]
    made = client.post("/v1/comparisons", json={"evaluations": [two, other]}).json()
    page = check_page(client.get(f"/v1/comparisons/{made['id']}/report"))
    # The pair is named once, and not in each row.
    assert 1 <= page.text.count(" less other") <= 4
    assert "Runs</th>" not in page.text
    (pair,) = made["metrics"]["h_mean"]["differences"]
    assert PAGE.fixed(pair["difference"], 2, sign=True) in page.text
    assert "other" in page.text
    assert client.get(f"/v1/comparisons/{made['id']}", headers={"Accept": "text/html"}).text.startswith("<!doctype")


def test_a_comparison_of_many_classes_can_be_read(client: httpx.Client) -> None:
    """Of 90 recalls the largest differences stand open, what is of all classes always does, and sentences name ten."""
    runs = [keep_matrix(client, 90, model=model) for model in ("left", "right")]
    made = client.post("/v1/comparisons", json={"evaluations": runs, "metrics": ["recall@*", "h_mean"]}).json()
    reply = client.get(f"/v1/comparisons/{made['id']}/report")
    page = check_page(reply)
    assert re.search(r"Cannot tell: (recall of \S+ \S+ ?){10}and 81 more\.", page.text)
    assert page.text.count("The other 51 differences") == 1
    table, _, rest = reply.text.partition('<section id="differences">')[2].partition("</section>")[0].partition("<det")
    assert table.count("<tr") == 1 + 40
    assert rest.count("<tr") == 1 + 51
    assert "Harmonic mean of the recalls" in table


def test_rows_that_stand_open_are_the_largest() -> None:
    rows = [(f"recall@{place}", float(place % 60)) for place in range(60)] + [("mcc", 0.0)]
    found = [key for (key,) in folded([(key, size, [key]) for key, size in rows])]
    assert found[:40] == [*(f"recall@{place}" for place in range(21, 60)), "mcc"]
    assert found[40:] == [f"recall@{place}" for place in range(21)]


def test_classes_with_one_reason_are_one_row(client: httpx.Client) -> None:
    source = matrix_input([[5, 0, 0], [0, 5, 0], [0, 1, 4]], labels=["a", "b", "c"])
    page = report(client, create(client, evaluation(input=source))["id"])
    row = "a, c The class has no false positive or no false negative, so the odds ratio is infinite"
    # Of b there is a false positive and no false negative.
    assert page.text.count("so the odds ratio is infinite") == 1
    assert row.replace("a, c", "a, b, c") in page.text


def test_figures_of_a_page_follow_its_theme_and_have_one_name(client: httpx.Client) -> None:
    """Colours are those of the theme, also of the ground; marks have no names beside that of the figure."""
    text = client.get(f"/v1/evaluations/{keep_matrix(client, 61)}/report").text
    figures = re.findall(r'<svg[^>]* class="fig".*?</svg>', text, re.DOTALL)
    assert figures
    for one in figures:
        assert not re.findall(r'(?:fill|stroke)="#[^"]{6,}"', one)[:3]
        assert "aria-" not in one
        assert 'role="' not in one


def test_labels_that_are_folded_are_called_labels(client: httpx.Client) -> None:
    labels = [f"tag_{place}" for place in range(45)]
    source = {"kind": "multilabel", "labels": labels, "y_true": [labels, labels[:9]], "y_pred": [labels, labels[:8]]}
    page = report(client, create(client, evaluation(input=source))["id"])
    assert "The other 5 labels" in page.text
    assert "other 5 classes" not in page.text


def test_a_comparison_across_datasets(client: httpx.Client) -> None:
    models, datasets = keep_table(client, SCORES, uuid4().hex[:6])
    answer = judge(client, metric="accuracy", models=models, datasets=datasets)
    page = check_page(client.get(f"/v1/comparisons/{answer['id']}/report"))
    assert "has the best average rank" in page.text


def test_the_page_says_why_the_lowest_recall_has_another_interval(client: httpx.Client) -> None:
    options = {"metrics": ["min(recall@*)", "recall@D"], "intervals": "all"}
    body = {"input": matrix_input(FOUR_CLASSES, labels=list("ABCD")), "options": options}
    page = check_page(client.post("/v1/metrics/compute", json=body, headers={"Accept": "text/html"}))
    assert page.text.count("upper limit holds for all of them together") == 1
    assert "the lowest of all recalls has a higher upper limit" in page.text


def test_a_page_has_the_words_of_its_task(client: httpx.Client) -> None:
    """Rankings have no class prevalence, and a name that is two metrics is the one of the task."""
    ranking = {"kind": "ranking", "query_ids": ["q", "q"], "relevance": [1, 0], "scores": [2.0, 1.0]}
    run = create(client, evaluation(input=ranking))
    text = report(client, run["id"]).text
    assert "class prevalence" not in text
    assert "with its rows" not in text
    assert "Precision at 10" in text
    labels = {"kind": "multilabel", "y_true": [["a"], ["b"], ["a", "b"]], "y_pred": [["a"], ["a"], ["b"]]}
    run = create(client, evaluation(input=labels))
    assert "Hamming loss" in report(client, run["id"]).text


def test_a_verdict_is_said_once(client: httpx.Client, four: str) -> None:
    text = report(client, four).text
    assert text.count("Accuracy hides this") == 1


def test_lines_below_a_figure_are_whole(client: httpx.Client, two: str) -> None:
    """A long name above the page takes no line from a figure, nor does a figure without one lose its first."""
    run = create(client, evaluation(model="m" * 100))
    lines = report(client, run["id"]).text.partition("Curves of equal means through the run")[2]
    assert lines.strip().startswith("class")
    made = client.post("/v1/comparisons", json={"evaluations": [run["id"], create(client, evaluation())["id"]]})
    assert (
        "right of 0 the first is better" in check_page(client.get(f"/v1/comparisons/{made.json()['id']}/report")).text
    )


def test_what_a_class_without_cases_cannot_have_is_not_spoken_of(client: httpx.Client) -> None:
    """No value is at equal prevalence then, nothing is taken for anything, and one class alone has no lowest recall."""
    body = {"input": matrix_input([[0, 0], [9, 31]], labels=["fine", "ill"], positive="ill")}
    reply = client.post("/v1/metrics/compute", json=body, headers={"Accept": "text/html"})
    assert "9 of 40 ill are missed" in check_page(reply).text
    for said in ("diamond", "◆ is their value", "0 of 0", ">none<", "The lowest recall"):
        assert said not in reply.text
    body = {"input": matrix_input([[5, 0], [0, 9]], labels=["a", "b"])}
    page = check_page(client.post("/v1/metrics/compute", json=body, headers={"Accept": "text/html"}))
    assert "diamond" in page.text
    assert "The lowest recall" not in page.text, "both are the same"


def test_rates_are_of_no_number_of_samples(client: httpx.Client) -> None:
    body = {"input": {**matrix_input([[0.9, 0.1], [0.2, 0.8]], labels=["fine", "ill"]), "normalized": True}}
    text = client.post("/v1/metrics/compute", json=body, headers={"Accept": "text/plain"}).text
    heads = next(line.split() for line in text.splitlines() if line.startswith("  class "))
    assert heads[:2] == ["class", "recall"]


def test_classes_of_items_have_their_own_metrics(client: httpx.Client) -> None:
    source = {
        "kind": "sets",
        "n_true": [10, 4, 6],
        "n_predicted": [8, 4, 3],
        "n_common": [6, 4, 0],
        "item_classes": ["car", "tree", "sign"],
    }
    body = {"input": source}
    page = check_page(client.post("/v1/metrics/compute", json=body, headers={"Accept": "text/html"}))
    assert "F1 averaged over samples is 0.56" in page.text, "what these runs are ranked by"
    assert "Lowest recall" not in page.text
    text = client.post("/v1/metrics/compute", json=body, headers={"Accept": "text/plain"}).text
    rows = [line.split() for line in text.splitlines()]
    assert ["class", "class_jaccard", "class_f1", "class_precision", "class_recall"] in rows
    found = [row[:2] for row in rows if row[:1] in (["sign"], ["car"], ["tree"])]
    assert found == [["sign", "0.000"], ["car", "0.500"], ["tree", "1.000"]]


def test_one_row_more_than_fits_is_not_counted_but_shown(client: httpx.Client) -> None:
    assert [fitting(count, 40) for count in (39, 40, 41, 42)] == [40, 40, 41, 40]
    read = client.get(f"/v1/evaluations/{keep_matrix(client, 41)}", headers={"Accept": "text/html"})
    assert "The other" not in read.text


def test_the_finding_of_a_class_whose_name_has_a_full_stop_is_whole(client: httpx.Client) -> None:
    body = {"input": matrix_input([[4, 10], [2, 984]], labels=["E. coli", "none"], positive="none")}
    text = check_page(client.post("/v1/metrics/compute", json=body, headers={"Accept": "text/html"})).text
    assert 'Class "E. coli" is found in 4 of 14 cases (29 %). Accuracy hides this: it is 0.988' in text
    assert "which is few" not in text, "it is said of the same class already"
