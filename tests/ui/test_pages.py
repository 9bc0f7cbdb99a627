"""Pages as they are sent: whole, safe, linked with each other, and saying what the API says."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
import numpy as np
import pytest
from sqlalchemy import Engine, event

from app.api.ui.home import _changed
from app.domain.catalogue import combinations
from app.domain.wording import PAGE, p_value
from tests.api.answers import create, evaluation, matrix_input
from tests.api.plots.test_reports import VOID, Page
from tests.ui.world import NAMES, World, labels_of

ASSETS = {"style.css", "ui.js"}
assert "input" in VOID


def check_page(reply: httpx.Response, status: int = 200) -> Page:
    """A page as it has to be: nothing in it is run, what it loads is the service's own, headings have an order."""
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(part.strip().split(" ", 1) for part in reply.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
    page = Page(reply.text)
    assert not page.open
    loaded = [attributes["src"] for attributes in page.named("script")]
    loaded += [one["href"] for one in page.named("link") if one["rel"] == "stylesheet"]
    assert {(one or "").rpartition("/")[2].partition("?")[0] for one in loaded} == ASSETS
    for tag, attributes in page.elements:
        assert tag not in {"iframe", "object", "embed", "base", "style"}, tag
        assert not [name for name in attributes if name.startswith("on") or name == "style"], (tag, attributes)
        address = attributes.get("href") or attributes.get("src") or attributes.get("action") or ""
        assert not re.match(r"[a-z]+:|//", address) or address == "data:,", address
    identifiers = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(identifiers) == len(set(identifiers))
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert all(one.get("scope") for one in page.named("th"))
    return page


def links(page: Page) -> set[str]:
    return {one["href"] or "" for one in page.named("a")}


@pytest.fixture(scope="module")
def pages(web: httpx.Client, world: World) -> Mapping[str, Page]:
    return {name: check_page(web.get(path), 404 if name == "nothing" else 200) for name, path in world.pages().items()}


def test_every_link_leads_somewhere(web: httpx.Client, world: World, pages: Mapping[str, Page]) -> None:
    """From every page to every page that it names; what a page loads is there too."""
    found: set[str] = set()
    for name, path in world.pages().items():
        page = pages[name]
        loaded = {one["href"] or "" for one in page.named("link")} | {one["src"] or "" for one in page.named("script")}
        found |= {urljoin(path, link) for link in links(page) | loaded if not link.startswith(("#", "data:"))}
        anchors = {link[1:] for link in links(page) if link.startswith("#")}
        assert anchors <= {attributes.get("id") for _, attributes in page.elements}, name
    targets = {urlsplit(one)._replace(fragment="").geturl() for one in found}
    assert {"/ui", "/ui/gates/promotion", "/ui/metrics/h_mean", "/docs"} <= targets
    # Of pages that one template makes a few are enough.
    of_metrics = sorted(one for one in targets if one.startswith("/ui/metrics/"))
    parts = {one for one in targets if urlsplit(one).path.endswith(("/figures", "/simulator", "/report"))}
    shown = {urlsplit(path)._replace(fragment="").geturl() for path in world.pages().values()}
    for target in sorted(targets - set(of_metrics[5:]) - parts - shown):
        assert web.get(target).status_code == 200, target


def test_what_the_api_says_is_what_pages_say(web: httpx.Client, world: World, pages: Mapping[str, Page]) -> None:
    answer = web.get(f"/v1/evaluations/{world.runs['four']}").json()
    page = pages["run of four"]
    for key in ("h_mean", "balanced_accuracy"):
        one = answer["headline"]["metrics"][key]
        assert PAGE.interval(one["low"], one["high"]) in page.text
    assert "Class D is found in 16 of 100 cases" in page.text
    board = web.get("/v1/leaderboard", params={"dataset": "hartwig", "metric": "h_mean"}).json()
    names = [f"{item['model']['name']} {item['model']['version']}" for item in board["items"]]
    text = pages["leaderboard"].text
    assert names == ["tumor-gbm 2", "tumor-rf 7"]
    assert text.index(names[0]) < text.index(names[1])
    assert PAGE.interval(board["items"][0]["low"], board["items"][0]["high"]) in text


@pytest.mark.parametrize("name", ["four", "35", "200"])
def test_other_metrics_come_last(pages: Mapping[str, Page], name: str) -> None:
    sections = [attributes["id"] for tag, attributes in pages[f"run of {name}"].elements if tag == "section"]
    first = ["classes", "matrix"] if name == "35" else ["matrix", "classes"] if name == "four" else ["classes"]
    assert [one for one in sections if one in first] == first
    assert sections[-3:] == ["others", "method", "definitions"]
    # Each beside the key that asks for it.
    assert "macro_fnr" in pages[f"run of {name}"].text


def test_of_many_classes_all_but_the_weakest_are_folded(web: httpx.Client, world: World) -> None:
    """Each class is in one of both tables, and all other metrics are in a third."""
    page = web.get(world.pages()["run of probabilities"]).text
    answer = web.get(f"/v1/evaluations/{world.runs['probabilities']}").json()["metrics"]
    for key in ("roc_auc_ovo_macro", "macro_fnr", "classwise_calibration_error"):
        value = PAGE.value(next(group[key] for group in answer.values() if key in group))
        assert re.search(rf">{key}</td><td[^>]*>{value}<", page)
    first, rest = (
        re.findall(r'<th scope="row" role="rowheader"><bdi>([^<]+)', table.split("</table>")[0])
        for table in page.split('data-sort="classes"')[1:]
    )
    assert len(first) == 40
    assert sorted(first + rest) == sorted(labels_of(60))


def test_compared_runs_are_those_of_a_comparison(web: httpx.Client, world: World, pages: Mapping[str, Page]) -> None:
    """In the order of the metric that ranks them, whatever the order of the address; nothing is saved."""
    text = pages["compared"].text
    made = web.get(f"/v1/comparisons/{world.comparisons['runs']}").json()
    metric = made["metrics"]["h_mean"]
    (pair,) = metric["differences"]
    assert pair["a"] == world.runs["better"]
    best, other = (f"{one['model']['name']} {one['model']['version']}" for one in made["evaluations"])
    ahead = PAGE.said(pair["difference"], pair["low"], pair["high"], sign=True)
    value = PAGE.value(metric["values"][0])
    assert f"{best} is best by harmonic mean of the recalls, {value}, ahead of {other} by {ahead}." in text
    assert f"{best} less {other}" in text
    # p of a class is adjusted over all of them, as in what is saved.
    rows = text.split(f"{best} less {other}")[1]
    for label in "ABCD":
        (recall,) = made["metrics"][f"recall@{label}"]["differences"]
        ends = PAGE.interval(recall["low"], recall["high"], sign=True)
        assert re.search(
            rf"Recall of {label}\s.*?{re.escape(ends)}\s+{p_value(recall['p_adjusted'])}\s", rows, re.DOTALL
        )
    # Metrics prefer different runs only where the differences are beyond chance.
    assert " prefer " in text
    rankings = web.get("/ui/compare", params={"run": [world.runs["ranking"], world.runs["ranking 2"]]}).text
    assert "cannot tell (4)" in rankings
    assert " prefer" not in rankings
    assert "D 100 69 best 16" in " ".join(text.split())
    of_two = check_page(web.get("/ui/compare", params={"run": [world.runs["two"], world.runs["unkept"]]})).text
    assert re.search(r"ill \d+ of \d+ (best )?\d+ of \d+ ", " ".join(of_two.split()))
    count = len(web.get("/v1/comparisons", params={"limit": 100}).json()["items"])
    check_page(web.get(world.pages()["compared"]))
    assert len(web.get("/v1/comparisons", params={"limit": 100}).json()["items"]) == count
    for runs, code in (
        (["four"], "invalid_query"),
        (["four", "four"], "invalid_input"),
        (["four", "35"], "different_labels"),
    ):
        refused = check_page(web.get("/ui/compare", params={"run": [world.runs[one] for one in runs]}), 422)
        assert code in refused.text


def test_of_many_classes_the_weakest_are_compared_as_in_what_is_saved(web: httpx.Client) -> None:
    runs, matrix = [], np.full((12, 12), 2) + np.diag(np.arange(60, 72))
    for model, lost in (("many", 0), ("fewer", 16)):
        matrix[0, :2] += [-lost, lost]
        sent = matrix_input(matrix.tolist(), labels=[f"c{k:02}" for k in range(12)])
        runs.append(create(web, evaluation(input=sent, model=model, dataset="many"))["id"])
    text = check_page(web.get("/ui/compare", params={"run": runs})).text
    asked = re.search(r'POST /v1/comparisons (\{"eval.*?\]\})', text)
    assert asked is not None
    saved = web.post("/v1/comparisons", json=json.loads(asked[1])).json()["metrics"]
    (first,) = saved["recall@c00"]["differences"]
    assert first["p_value"] < 0.05 < first["p_adjusted"]
    # Six of the classes are shown.
    shown = re.findall(r"Recall of (\w+) \S+ \S+ \S+ \S+ to \S+ (\S+) ", text.split("many less fewer")[1])
    names = [f"c{k:02}" for k in range(6)]
    assert shown == [(name, p_value(saved[f"recall@{name}"]["differences"][0]["p_adjusted"])) for name in names]
    for one in runs:
        web.delete(f"/v1/evaluations/{one}")


def test_runs_that_were_not_ticked_are_asked_for(web: httpx.Client, world: World) -> None:
    """The form of the list leads here with whatever was ticked."""
    some = [*world.runs.values()][:7]
    for runs, said in (([], "none"), (some[:1], "1"), (some, "7")):
        text = check_page(web.get("/ui/compare", params={"run": runs}), 422).text
        assert f"Run: expected 2 to 6, got {said}: tick them in the list of runs." in text


def test_a_check_says_why(pages: Mapping[str, Page]) -> None:
    page = pages["check: worse"]
    assert "3 of 6 rules fail, 2 cannot be decided with these samples, 1 passes." in page.text
    assert "Limit 0.8" in str(page.named("svg"))
    # The class that decides is called as the metric is.
    text = " ".join(page.text.split())
    assert "decided by recall of D" in text
    # The limits that decided hold the rule's, those of its level do not.
    assert "−0.014 (−0.029 to +0.001) The difference in accuracy" in text
    assert pages["gate"].text.count("version") >= 2
    gate = " ".join(pages["gate"].text.split())
    for said in (
        "Recall of D at least 0.7 recall@D",
        "Accuracy not worse than the baseline by more than 0.001",
        "Recall of every class not surely worse than the baseline by more than 0.05",
    ):
        assert said in gate
    # Both checks do not pass, and several rules stand in the way of each.
    assert re.search(r"blocks most often: 2 of 2 checks, \d of them alone", pages["gate"].text)


def test_a_gate_shows_the_values_of_each_rule_over_its_checks(web: httpx.Client) -> None:
    """The better run has a recall of .69 and the worse one of .16, limits of .7 are above both, and errors below."""
    text = web.get("/ui/gates/promotion").text
    (strip,) = re.findall(r'<th scope="row">Recall of D at least 0.7</th>.*?</tr>', text)
    limit = float(re.findall(r'class="lim"[^>]* y1="([\d.]+)"', strip)[0])
    better, worse = (float(one) for one in re.findall(r'<svg x="[\d.]+%" y="([\d.]+)"', strip))
    assert limit < better < worse
    assert [float(one) for one in re.findall(r'class="hatch"[^>]* y="([\d.]+)"', strip)] == [limit]
    # Both limits of each value are drawn around it.
    ends = [[float(end) for end in one] for one in re.findall(r'class="v\w" [^>]* y1="([\d.]+)" y2="([\d.]+)"', strip)]
    assert [low > value > high for value, (low, high) in zip((better, worse), ends, strict=True)] == [True, True]
    assert ">0.160 (" in strip.replace("<br>", ">") or "0.16 (" in strip


@contextmanager
def statements() -> Iterator[list[str]]:
    """What the database is asked meanwhile; the service is in a thread of this process."""
    asked: list[str] = []

    def hear(*arguments: Any) -> None:
        asked.append(arguments[2])

    event.listen(Engine, "before_cursor_execute", hear)
    try:
        yield asked
    finally:
        event.remove(Engine, "before_cursor_execute", hear)


@pytest.mark.parametrize(
    ("path", "table", "times", "said"),
    [
        ("/ui/gates", "gate_checks", 1, "promotion version 2"),
        ("/ui/gates/promotion", "evaluations", 0, "tumor-rf 7 on hartwig, test tumor-gbm 2 on hartwig, test"),
        ("/ui/comparisons", "comparisons", 1, "tumor-rf 7 , tumor-gbm 2"),
    ],
)
def test_a_list_is_read_at_once(web: httpx.Client, world: World, path: str, table: str, times: int, said: str) -> None:
    """However many gates, checks or comparisons are in it."""
    for name in ("unused-1", "unused-2"):
        web.put(f"/v1/gates/{name}", json={"rules": [{"metric": "h_mean", "min": 0.8}]})
    again = {"evaluations": [world.runs["four"], world.runs["better"]], "metrics": ["h_mean"]}
    assert web.post("/v1/comparisons", json=again).status_code == 201
    with statements() as asked:
        page = check_page(web.get(path))
    assert len([one for one in asked if re.search(rf"FROM {table}\b", one)]) == times
    assert said in page.text


def test_pages_speak_of_what_their_data_have(pages: Mapping[str, Page]) -> None:
    """Labels have a prevalence each; samples of labels are no cases of one class, and queries have neither."""
    labels, queries = pages["run of labels"].text, pages["run of ranking"].text
    assert "owed to the label prevalence" in " ".join(labels.split())
    assert "class" not in labels.split("Other metrics")[0].lower().replace("classification", "")
    assert "owed to" not in queries
    assert "owed to the class prevalence" in " ".join(pages["run of four"].text.split())


def test_filters_are_those_of_the_api(web: httpx.Client, world: World) -> None:
    def runs(**asked: str) -> set[str]:
        found = links(check_page(web.get("/ui", params=asked)))
        return {name for name, one in world.runs.items() if any(link.endswith(one) for link in found)}

    assert runs() == set(world.runs)
    assert runs(model="tumor-rf") == {"four"}
    assert runs(tag="stage:candidate") == {"better"}
    assert "four" not in runs(where="h_mean>=0.7")
    # Those without the value come last, on the next page.
    assert set(world.runs) - runs(sort="h_mean") <= {"ranking", "ranking 2", "regions", "clusters"}
    refused = check_page(web.get("/ui", params={"where": "h_men>=0.7"}), 422)
    assert "h_mean" in refused.text
    for asked, said in (("modell=x", "did you mean model?"), ("%3Cb%3E=1", "there is no such parameter; known are")):
        passed_over = check_page(web.get(f"/ui?{asked}")).text
        assert "passes over what it does not know" in passed_over
        assert said in passed_over
    assert "passes over" not in check_page(web.get("/ui?model=tumor-rf")).text


def test_empty_fields_are_no_filters(web: httpx.Client) -> None:
    reply = web.get("/ui?dataset=&model=tumor-rf&tag=")
    assert (reply.status_code, reply.headers["location"]) == (303, "?model=tumor-rf")


def test_names_are_data(web: httpx.Client, world: World, pages: Mapping[str, Page]) -> None:
    """Hostile names stand as text and lead to filters; the direction of one does not reach its neighbours."""
    page = pages["run of hostile"]
    for name in NAMES:
        assert name in page.text
    isolated = [one for one, _ in page.elements].count("bdi")
    assert isolated > len(NAMES)
    leftward = NAMES[-2]
    compared = re.findall(r"<(?:p|h1)[ >].*?</(?:p|h1)>", web.get(world.pages()["compared hostile"]).text)
    beside_numbers = [one for one in compared if leftward in one]
    assert len(beside_numbers) > 2
    assert [one for one in beside_numbers if one.count(leftward) != one.count(f"<bdi>{leftward}</bdi>")] == []
    filtered = check_page(web.get("/ui", params={"model": NAMES[0]}))
    assert any(link.endswith(world.runs["hostile"]) for link in links(filtered))


def test_what_there_is_not_is_said(web: httpx.Client) -> None:
    for path in ("/ui/evaluations/01900000-0000-7000-8000-00000000ffff", "/ui/evaluations/x", "/ui/gates/none"):
        page = check_page(web.get(path), 404)
        assert "Nothing at this address" in page.text
    assert check_page(web.get("/ui/metrics/h_men"), 404).text.count("h_mean")
    assert "; did you mean h_mean? " in check_page(web.get("/ui?dataset=hartwig&metric=h_men"), 422).text
    missing = " ".join(check_page(web.get("/ui/history"), 422).text.split())
    assert re.search(r"Dataset: expected this parameter, it is missing\. Model: expected this parameter", missing)


def test_a_leaderboard_is_by_what_its_runs_have(web: httpx.Client) -> None:
    """Clusterings are not ranked by recalls where nobody says so, and conditions are on what they have."""
    page = check_page(web.get("/ui?dataset=genes"))
    (condition,) = [one for one in page.named("input") if one.get("name") == "where"]
    assert (condition["placeholder"] or "").startswith("adjusted_rand")
    # A column is left out where no run has anything in it.
    assert "Value" not in [text.strip() for text in page.texts]
    assert "by adjusted Rand index" in page.text
    assert "has no meaning" not in page.text


def test_the_tree_ends_in_what_the_api_recommends(web: httpx.Client) -> None:
    asked = {"task": "classification", "classes": "multiclass", "balanced": False, "error_priority": "both"}
    advised = web.post("/v1/metrics/recommendations", json=asked).json()["metrics"]
    path = "/ui/metrics/choose?task=classification"
    chosen = {"chance_corrected": "no", "graphical": "no", "classes": "multiclass", "balanced": "no"}
    chosen |= {"error_priority": "both", "has_probabilities": "no"}
    for _ in range(10):
        page = check_page(web.get(path))
        if "Advised" in page.text:
            break
        (path,) = {
            urljoin(path, link) for link in links(page) for about, answer in chosen.items()
            if link.endswith(f"{about}%3A{answer}") and link.count("answer=") > path.count("answer=")
        }  # fmt: skip
    assert [one["metric"] for one in advised] == re.findall(r"<h3><a [^>]*>[^<]*</a> <code>(\w+)", web.get(path).text)
    assert "Expected one of yes, no, got 'perhaps'" in check_page(web.get(f"{path}&answer=balanced:perhaps"), 422).text


def test_reports_are_files(web: httpx.Client, world: World) -> None:
    reply = web.get(f"/ui/evaluations/{world.runs['four']}/report")
    assert reply.headers["content-disposition"].startswith("attachment")
    assert "<script" not in reply.text
    answer = web.get(f"/v1/evaluations/{world.runs['four']}")
    for form, media in (("json", "application/json"), ("csv", "text/csv"), ("md", "text/markdown")):
        reply = web.get(f"/ui/evaluations/{world.runs['four']}/report", params={"form": form})
        assert reply.headers["content-disposition"].endswith(f'{world.runs["four"]}.{form}"')
        assert reply.content == web.get(answer.url, headers={"Accept": media}).content


def test_a_run_leads_to_what_is_made_of_it(world: World, pages: Mapping[str, Page]) -> None:
    """Files, the leaderboard, its comparisons; to slices only where its samples have attributes."""
    run, page = world.runs["four"], pages["run of four"]
    led = {urljoin(world.pages()["run of four"], one) for one in links(page)}
    assert {f"/ui/evaluations/{run}/report{form}" for form in ("", "?form=json", "?form=csv", "?form=md")} <= led
    board = "/ui?dataset=hartwig&dataset_version=2022-08&split=test#leaderboard"
    assert {f"/ui/comparisons?evaluation={run}", board} <= led
    assert f"/ui/evaluations/{run}/slices" not in led


def test_comparisons_of_one_run(web: httpx.Client, world: World) -> None:
    made = f"comparisons/{world.comparisons['runs']}"
    assert made in web.get("/ui/comparisons", params={"evaluation": world.runs["four"]}).text
    assert made not in web.get("/ui/comparisons", params={"evaluation": world.runs["two"]}).text


def test_headings_say_what_is_shown(pages: Mapping[str, Page]) -> None:
    """In counts of the matrix; the plain name opens the line below."""
    four = " ".join(pages["run of four"].text.split())
    for said in ("kappa moves most with prevalence: 0.938 here, and 0.720", "D is taken for A in 40 of its 84 misses",
                 "D is recognised least often: in 16 of 100 cases", "Confusion matrix."):  # fmt: skip
        assert said in four


def test_a_page_that_is_known_is_not_sent_again(web: httpx.Client, world: World) -> None:
    path = f"/ui/evaluations/{world.runs['two']}"
    tag = web.get(path).headers["etag"]
    assert web.get(path, headers={"If-None-Match": tag}).status_code == 304


RANKING = {
    "kind": "ranking",
    "query_ids": ["easy", "easy", "hard", "hard"],
    "relevance": [1, 0, 0, 1],
    "scores": [2.0, 1.0, 2.0, 1.0],
}
LABELS = {"kind": "multilabel", "labels": ["cat", "dog"], "y_true": [[1, 0], [0, 1]], "y_pred": [[1, 0], [0, 0]]}


def test_pages_speak_of_their_task(web: httpx.Client) -> None:
    """A ranking leads with what rankings are ranked by and says which queries fail; labels have no other classes."""
    found = {}
    for name, source in (("ranked", RANKING), ("labelled", LABELS)):
        body = {"input": source, "model": {"name": name}, "dataset": {"name": f"{name} data"}}
        found[name] = web.get(f"/ui/evaluations/{web.post('/v1/evaluations', json=body).json()['id']}").text
    text = re.sub(r"<[^>]+>", " ", found["ranked"])
    assert re.search(r"Normalised discounted cumulative gain at 10 is\s+0\.8", text)
    assert text.index("Query") < text.index(" hard ") < text.index(" easy ")
    assert "were all classes" not in found["ranked"]
    assert "were every label in half of the samples" in found["labelled"]
    listed = web.get("/ui", params={"dataset": "ranked data"}).text
    assert "nDCG@10" in listed
    assert "Accuracy" not in listed


@pytest.mark.parametrize(("run", "label"), [("two", "ill"), ("four", "D")])
def test_the_simulator_has_the_numbers_of_projections(web: httpx.Client, world: World, run: str, label: str) -> None:
    """Precision with its limits at a share of one in a thousand, and everything else in exact fractions of it."""
    path = f"/ui/evaluations/{world.runs[run]}"
    names = [f"precision@{label}", f"recall@{label}"]
    asked = {"prevalence": {label: 0.001}, "metrics": names}
    projected = web.post(f"/v1/evaluations/{world.runs[run]}/projections", json=asked).json()["metrics"]
    given: dict[str, str | float] = {"class": label, "share": 0.001, "cost_fn": 50, "cost_fp": 2}
    page = check_page(web.get(f"{path}/simulator", params=given))
    text = " ".join(page.text.split())
    precision, recall = (projected[one] for one in names)
    ends = PAGE.estimate(*(precision[end] for end in ("value", "low", "high")))
    assert f"○ Precision {ends[0]} {ends[1]}" in text
    alerts = recall["value"] / precision["value"]
    cost = 50 * (1 - recall["value"]) + 2 * (alerts - recall["value"])
    assert f"Missed per 1,000 {1 - recall['value']:.2f} of 1.0 cases" in text
    assert re.search(rf"Expected cost per 1,000 {cost:.0f}(\.\d)? " if cost > 100 else rf"{cost:.1f} ", text)
    assert "Metrics that move, at fixed shares" in text
    # Where others keep their proportions, no share of one class makes four equally frequent.
    assert ("equal prevalence" in text) == (run == "two")
    for wrong in ("share=0.7", "class=nobody", "threshold=nan", "threshold=1e999"):
        check_page(web.get(f"{path}/simulator?{wrong}"), 422)
    # What is named by a key stays as it is written.
    assert " cost_fp: expected " in check_page(web.get(f"{path}/simulator?cost_fp=0"), 422).text
    check_page(web.get(f"/ui/evaluations/{world.runs['clusters']}/simulator"), 422)


def test_scores_of_classes_in_digits_read_as_sentences(web: httpx.Client) -> None:
    """Digits are called a class, the threshold is the run's own, and what scores cannot have is not among the first."""
    random = np.random.default_rng(5)
    truth = (random.random(200) < 0.4).astype(int)
    scores = random.normal(size=200) + 1.5 * truth
    source = {"kind": "scores", "y_true": truth.tolist(), "scores": scores.tolist(), "threshold": 0.8, "positive": "1"}
    kept = web.post("/v1/evaluations", json={"input": source, "model": {"name": "svm"}, "dataset": {"name": "digits"}})
    path = f"/ui/evaluations/{kept.json()['id']}"
    run = " ".join(re.sub(r"<[^>]+>", " ", web.get(path).text).split())
    assert re.search(r"Class 1: \d+ of \d+ cases are caught", run)
    assert "Class 1 is recognised least often" in run
    assert "Probabilities, lower is better" not in run
    assert "The input holds scores that are no probabilities" in run
    assert " and a threshold of 0.8, " in web.get(f"{path}/simulator").text


def test_the_simulator_takes_the_nearest_threshold(web: httpx.Client, world: World) -> None:
    path = f"/ui/evaluations/{world.runs['two']}/simulator"
    for threshold, found in ((0.3, "0.3"), (0.2004, "0.2"), (-5, "0.01"), (7, "0.99")):
        assert f" and a threshold of {found}, " in web.get(path, params={"threshold": threshold}).text


def test_what_is_not_all_or_none_never_reads_as_it(web: httpx.Client) -> None:
    """Of 4,000 cases one is missed, and where the class is rare nearly all alerts are false."""
    source = {"kind": "confusion_matrix", "labels": ["fine", "ill"], "matrix": [[9000, 1000], [1, 3999]]}
    kept = web.post("/v1/evaluations", json={"input": source, "model": {"name": "m"}, "dataset": {"name": "rare"}})
    page = check_page(web.get(f"/ui/evaluations/{kept.json()['id']}/simulator", params={"share": "0.0001"}))
    said = " ".join(page.text.split())
    assert "more than 99 of 100 alerts are false and more than 99 of 100 cases are caught" in said
    assert "Missed per 1,000 <0.01" in said


def test_the_simulator_has_no_limits_of_weights_and_each_share_once(web: httpx.Client) -> None:
    def simulated(matrix: list[list[float]]) -> str:
        source = {"kind": "confusion_matrix", "labels": ["fine", "ill"], "matrix": matrix}
        kept = web.post("/v1/evaluations", json={"input": source, "model": {"name": "m"}, "dataset": {"name": "few"}})
        return " ".join(check_page(web.get(f"/ui/evaluations/{kept.json()['id']}/simulator")).text.split())

    weighted = simulated([[90.5, 10], [3, 7.5]])
    assert "95 % interval " not in weighted
    assert "There are no limits of alerts, precision and cost: they need numbers of independent samples." in weighted
    # An observed share of 0.50000005 reads as 50 %, and is this data.
    halves = simulated([[10**7 - 1, 1], [1, 10**7 + 1]]).split("The same at fixed shares")[1]
    assert halves.count(" 50 % ") == halves.count(" 50 % this data ") == 2


def test_home_has_a_part_for_each_dataset(web: httpx.Client, world: World, pages: Mapping[str, Page]) -> None:
    """What is said of one is what the leaderboard, the last check and the runs say; runs can be ticked."""
    parts = [attributes["data-part"] for tag, attributes in pages["runs"].elements if attributes.get("data-part")]
    assert any("dataset=hartwig&" in str(one) for one in parts)
    ticked = [one["value"] for one in pages["runs"].named("input") if one.get("type") == "checkbox"]
    assert set(world.runs.values()) <= set(ticked)
    # Runs of several tasks have one column for what each is ranked by, and none that is empty for some.
    assert "○ Accuracy" not in pages["runs"].text
    assert "H 0.432" in pages["runs"].text
    assert "ARI 0." in pages["runs"].text
    text = " ".join(pages["leaderboard"].text.split())
    best, other = web.get("/v1/leaderboard", params={"dataset": "hartwig"}).json()["items"]
    value = PAGE.said(best["value"], best["low"], best["high"])
    alike = "tumor-rf 7 may be as good" if other["may_be_best"] else "no other is better"
    assert f"tumor-gbm 2 is best by harmonic mean of the recalls, {value}" in text
    assert alike in text
    assert (
        "Weakest class D is recognised least often: in 69 of 100 cases. D is taken for A in 12 of its 31 misses."
        in text
    )
    assert "3 of 6 rules fail" in text
    assert "of 100 D it misses 31 instead of 84" in text
    assert "Weakest class" not in check_page(web.get("/ui?dataset=genes")).text


def test_where_there_is_nothing_there_is_nothing_to_filter(web: httpx.Client) -> None:
    for path, project, count in (("/ui", "nothing-yet", 0), ("/ui?model=nobody", "default", 1)):
        page = check_page(web.get(path, headers={"X-Prevail-Project": project}))
        assert [one.get("class") for one in page.named("form")].count("filters") == count, path


def test_the_wrong_side_of_a_limit_is_hatched(web: httpx.Client, world: World) -> None:
    """Below the least that is asked for, and above the most."""
    page = web.get(f"/ui/gates/promotion/checks/{world.checks['better']}").text
    sides = {}
    for drawn in re.findall(r'<svg class="nl".*?class="base"', page, flags=re.DOTALL):
        (limit,) = re.findall(r'aria-label="Limit ([^,]+),', drawn)
        (sides[limit],) = re.findall(r'<rect class="hatch" x="([\d.]+)%?" width="([\d.]+)%"', drawn)
    assert sides["0.8"] == ("0", "80.00")
    assert sides["0.05"] == ("5.00", "95.00")


def test_a_dataset_whose_runs_have_no_value_has_no_best_run(web: httpx.Client) -> None:
    """Of decisions that are no classes there is no recall."""
    source = {
        "kind": "confusion_matrix",
        "labels": ["well", "ill"],
        "decisions": ["wait", "test", "treat"],
        "matrix": [[7, 2, 1], [1, 3, 6]],
    }
    for version in ("1", "2"):
        body = {"input": source, "model": {"name": "triage", "version": version}, "dataset": {"name": "triage"}}
        assert web.post("/v1/evaluations", json=body).status_code == 201
    page = check_page(web.get("/ui?dataset=triage"))
    said = " ".join(page.text.split())
    assert "The newest run" in said
    assert "Compare the best" not in said
    assert "The best run" not in said


def test_misses_of_a_class_are_held_against_those_of_as_many_cases() -> None:
    runs = {"new": [[11, 9], [1, 9]], "old": [[8, 2], [3, 7]]}
    read = {name: {"input": {"confusion_matrix": matrix, "labels": ["x", "y"]}} for name, matrix in runs.items()}
    for one in read.values():
        one["input"]["content"] = "counts"
    newest, before = (
        {"model": {"name": name, "version": None}, "value": 0.5, "evaluation": {"id": name}} for name in runs
    )
    assert _changed("accuracy", newest, before, read).endswith("; of 10 y it misses 1 instead of 3.")
    for one in read.values():
        one["input"]["labels"] = ["0", "1"]
    assert _changed("accuracy", newest, before, read).endswith("; of 10 of class 1 it misses 1 instead of 3.")
    for one in read.values():
        one["input"]["content"] = "rates"
    assert "misses" not in _changed("accuracy", newest, before, read)


def test_pages_keep_room_for_the_figures_that_come(pages: Mapping[str, Page]) -> None:
    """Of samples that are not kept there are none, but the words that say so."""
    rooms = {
        name: sum(one.get("class") == "room" for one in pages[f"run of {name}"].named("svg"))
        for name in ("two", "unkept")
    }
    assert rooms == {"two": 5, "unkept": 2}


def test_a_history_leads_to_its_figures(web: httpx.Client, world: World, pages: Mapping[str, Page]) -> None:
    """They are of the same series, come below the same heading, and lead back."""
    path, page = world.pages()["history"], pages["history"]
    (part,) = [one["data-part"] or "" for _, one in page.elements if one.get("data-part")]
    assert [one.get("class") for one in page.named("svg")].count("room") == 1
    assert {part} <= links(page)
    address = urljoin(path, part)
    assert sorted(urlsplit(address).query.split("&")) == sorted(urlsplit(path).query.replace("@", "%40").split("&"))
    figures = check_page(web.get(address))
    assert "Over time" in " ".join(page.text.split())
    assert "Over time" in " ".join(figures.text.split())
    assert urljoin(address, next(one for one in links(figures) if "history?" in one)) == urljoin(
        path, f"?{urlsplit(address).query}"
    )
    assert [one.get("class") for one in figures.named("svg")].count("fig") == 1


def test_edited_rules_are_tried(web: httpx.Client, world: World) -> None:
    """The page says what a trial of the interface says, and marks the runs that would have ended otherwise."""
    saved = web.get("/v1/gates/promotion").json()
    lower = [{**one, "min": 0.4} if one["metric"] == "h_mean" else one for one in saved["rules"]]
    marked = []
    for edited, said in (
        (lower, "With Harmonic mean of the recalls at least 0.4"),
        (lower[:1], "With these rules"),
        (saved["rules"][:-1], "Without Hamming loss at most 0.05"),
    ):
        asked = {
            "rules": edited,
            "minimum_samples": saved["minimum_samples"],
            "evaluations": {"latest": 20, "dataset": {"name": "hartwig", "version": "2022-08", "split": "test"}},
            "baseline": world.runs["four"],
            "gate": "promotion",
        }
        items = web.post("/v1/gates/trials", json=asked).json()["items"]
        count = sum(one["tried"]["verdict"] != one["saved"]["verdict"] for one in items)
        sent = {"rules": json.dumps(edited), "baseline": world.runs["four"]}
        page = check_page(web.get("/ui/gates/promotion", params=sent))
        assert f"{said}, {count} of the last 2 runs would have ended otherwise" in " ".join(page.text.split())
        assert len([one for one in page.named("line") if one.get("class") == "rf"]) == 2 * count
        marked.append(count)
    assert marked[1]
    refused = check_page(web.get("/ui/gates/promotion", params={"rules": '[{"metric": "h_men", "min": 0.4}]'}), 422)
    assert "There is no metric or function 'h_men'; did you mean h_mean?" in refused.text
    # What was typed stays, to be mended.
    assert '"h_men"' in refused.text
    broken = check_page(web.get("/ui/gates/promotion", params={"rules": '[{"metric"'}), 400)
    assert "Expected rules as JSON: unexpected end of data: line 1 column 11" in broken.text
    assert "Which rule blocks" in broken.text
    check_page(web.get("/ui/gates/promotion", params={"rules": '[{"metric": "mcc", "min": 0, "min": 1}]'}), 422)
    assert web.get("/v1/gates/promotion").json()["version"] == saved["version"]


def test_formulas_are_shown(web: httpx.Client) -> None:
    page = check_page(web.get("/ui/metrics/h_mean"))
    assert len(page.named("math")) == 1
    assert check_page(web.get("/ui/metrics/cohen_kappa")).named("math")[0]["display"] == "inline"
    assert len(check_page(web.get("/ui/metrics")).named("math")) == len(combinations())
