"""Gates: put in versions, read, ended; and checks with three verdicts, stored with the version that made them."""

import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.api.answers import answer_model
from app.domain.decisions import GateVersion
from app.domain.wording import about
from app.services.gate import CheckAnswer, GateTrial
from tests.api.answers import Json, check_json, check_problem, check_shape, create, evaluation, matrix_input
from tests.api.decisions import Matrix, keep, with_ids
from tests.api.shown import BODIES
from tests.bank import each


def matrix(wrong: int, total: int = 1000) -> Matrix:
    """Two classes of equal size with the same number of mistakes in each."""
    half = total // 2
    return [[half - wrong, wrong], [wrong, half - wrong]]


@pytest.fixture
def name() -> str:
    return f"gate-{uuid4().hex[:10]}"


def put(client: httpx.Client, name: str, *rules: Json, status: int = 201, **members: Any) -> Json:
    reply = client.put(f"/v1/gates/{name}", json={"rules": list(rules), **members})
    assert reply.status_code == status, reply.text
    check_json(reply)
    check_shape(reply, GateVersion)
    answer: Json = reply.json()
    return answer


def check(client: httpx.Client, name: str, evaluation: str, baseline: str | None = None) -> Json:
    body = {"evaluation": evaluation} | ({"baseline": baseline} if baseline else {})
    reply = client.post(f"/v1/gates/{name}/checks", json=body)
    assert reply.status_code == 201, reply.text
    check_json(reply, named=("each",))
    answer_model(CheckAnswer).model_validate_json(reply.content)
    assert client.get(reply.headers["location"]).content == reply.content
    answer: Json = reply.json()
    return answer


def judged(client: httpx.Client, rule: Json, evaluation: str, baseline: str | None = None) -> Json:
    """The result of one rule, in a gate of its own."""
    name = f"gate-{uuid4().hex[:10]}"
    put(client, name, rule)
    (result,) = check(client, name, evaluation, baseline)["results"]
    found: Json = result
    return found


# Gates.


def test_a_gate_is_put_read_and_listed(client: httpx.Client, name: str) -> None:
    made = put(client, name, {"metric": "h_mean", "min": 0.8}, description="first")
    assert (made["name"], made["version"], made["description"]) == (name, "1", "first")
    assert made["rules"] == [{"metric": "h_mean", "min": 0.8, "bound": "lower", "level": 0.95}]
    assert client.get(f"/v1/gates/{name}").json() == made
    assert made in client.get("/v1/gates", params={"limit": 200}).json()["items"]


def test_versions_are_kept(client: httpx.Client, name: str) -> None:
    first = put(client, name, {"metric": "h_mean", "min": 0.8})
    same = put(client, name, {"metric": "h_mean", "min": 0.8}, status=200)
    assert same == first
    second = put(client, name, {"metric": "h_mean", "min": 0.9}, status=200)
    assert (second["version"], second["rules"][0]["min"]) == ("2", 0.9)
    assert client.get(f"/v1/gates/{name}").json() == second
    assert client.get(f"/v1/gates/{name}", params={"version": 1}).json() == first
    assert client.get(f"/v1/gates/{name}/versions").json()["items"] == [second, first]
    check_problem(client.get(f"/v1/gates/{name}", params={"version": 3}), 404, "not_found")


def test_a_deleted_gate_ends_and_its_history_stays(client: httpx.Client, name: str) -> None:
    run = keep(client, matrix(10))
    put(client, name, {"metric": "h_mean", "min": 0.8})
    found = check(client, name, run)
    assert client.delete(f"/v1/gates/{name}").status_code == 204
    check_problem(client.delete(f"/v1/gates/{name}"), 404, "not_found")
    check_problem(client.get(f"/v1/gates/{name}"), 404, "not_found")
    check_problem(client.post(f"/v1/gates/{name}/checks", json={"evaluation": run}), 404, "not_found")
    assert name not in [gate["name"] for gate in client.get("/v1/gates", params={"limit": 200}).json()["items"]]
    assert client.get(f"/v1/gates/{name}", params={"version": 1}).json()["version"] == "1"
    assert client.get(f"/v1/gates/{name}/checks/{found['id']}").json() == found
    assert len(client.get(f"/v1/gates/{name}/checks").json()["items"]) == 1
    again = put(client, name, {"metric": "h_mean", "min": 0.8})
    assert again["version"] == "3"


def test_gates_are_listed_in_pages(client: httpx.Client) -> None:
    prefix = f"z{uuid4().hex[:6]}"
    names = [f"{prefix}-{index}" for index in range(5)]
    for name in names:
        put(client, name, {"metric": "accuracy", "min": 0.5})
    client.delete(f"/v1/gates/{names[1]}")

    def walk() -> Iterator[str]:
        cursor = None
        while True:
            page = client.get("/v1/gates", params={"limit": 2} | ({"cursor": cursor} if cursor else {})).json()
            yield from (gate["name"] for gate in page["items"])
            cursor = page["next_cursor"]
            if cursor is None:
                return

    found = list(walk())
    assert found == sorted(found)
    assert [each for each in found if each.startswith(prefix)] == [each for each in names if each != names[1]]


# Verdicts.


@each(
    ("rule", "verdict"),
    [
        ({"metric": "h_mean", "min": 0.8}, "pass"),
        ({"metric": "h_mean", "min": 0.9}, "inconclusive"),
        ({"metric": "h_mean", "min": 0.91}, "inconclusive"),
        ({"metric": "h_mean", "min": 0.95}, "fail"),
        ({"metric": "h_mean", "min": 0.9, "bound": "value"}, "fail"),
        ({"metric": "h_mean", "min": 0.89, "bound": "value"}, "pass"),
        ({"metric": "h_mean", "min": 0.91, "bound": "upper"}, "pass"),
        ({"metric": "h_mean", "min": 0.95, "bound": "upper"}, "fail"),
        ({"metric": "error_rate", "max": 0.2}, "pass"),
        ({"metric": "error_rate", "max": 0.1}, "inconclusive"),
        ({"metric": "error_rate", "max": 0.05}, "fail"),
        ({"metric": "error_rate", "max": 0.05, "bound": "upper"}, "fail"),
        ({"metric": "error_rate", "max": 0.09, "bound": "upper"}, "pass"),
        ({"metric": "error_rate", "max": 0.2, "bound": "value"}, "pass"),
        ({"metric": "gps(recall@*, precision@1)", "min": 0.8}, "pass"),
        ({"metric": "min(recall@*)", "min": 0.5, "bound": "lower"}, "pass"),
        ({"metric": "precision", "min": 0.95}, "fail"),
    ],
)
def test_floors_and_ceilings(client: httpx.Client, rule: Json, verdict: str) -> None:
    """1000 samples, all rates 0.898."""
    run = keep(client, matrix(51))
    found = judged(client, rule, run)
    assert found["verdict"] == verdict, found
    assert found["quantity"] == "value"
    assert found["low"] < found["value"] < found["high"]
    assert (found["needed_samples"] is not None) == (verdict == "inconclusive")
    limit = rule.get("min", rule.get("max"))
    assert f"{limit:.4g}" in found["message"]


def test_the_interval_is_that_of_the_evaluation(client: httpx.Client) -> None:
    run = keep(client, matrix(51))
    shown = client.get(f"/v1/evaluations/{run}").json()["intervals"]
    for metric in ("h_mean", "accuracy", "recall@0", "mcc"):
        found = judged(client, {"metric": metric, "min": 0.5}, run)
        assert (found["low"], found["high"], found["method"]) == tuple(
            shown[metric][part] for part in ("low", "high", "method")
        )
    assert judged(client, {"metric": "bennett_s", "min": 0.5}, run)["method"] == "wilson"
    assert judged(client, {"metric": "fowlkes_mallows@0", "min": 0.5}, run)["method"] == "posterior"


def test_the_number_of_samples_that_would_settle_it(client: httpx.Client) -> None:
    run = keep(client, matrix(50))
    found = judged(client, {"metric": "accuracy", "min": 0.89}, run)
    assert found["verdict"] == "inconclusive"
    reach, gap = found["value"] - found["low"], found["value"] - 0.89
    # 80 % of power take (1 + .84 / 1.96)^2 times what settles it in half of the cases; Wilson's reach falls towards 1.
    assert found["needed_samples"] == pytest.approx(2.04 * 1000 * (reach / gap) ** 2, rel=0.1)
    assert 1000 <= found["needed_at_least"] < found["needed_samples"]
    assert about(found["needed_samples"]) in found["message"]
    settled = keep(client, matrix(found["needed_samples"] // 20, found["needed_samples"]))
    assert judged(client, {"metric": "accuracy", "min": 0.889}, settled)["verdict"] == "pass"
    never = judged(client, {"metric": "accuracy", "min": 0.9}, run)
    assert never["needed_samples"] is None
    assert "no number of samples" in never["message"]


@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        ({"not_worse_than": "baseline", "margin": 0.05}, "pass"),
        ({"not_worse_than": "baseline", "margin": 0.001}, "inconclusive"),
        ({"not_worse_than": "baseline", "margin": 0.01, "bound": "upper"}, "pass"),
        ({"not_worse_than": "baseline", "bound": "value"}, "fail"),
        ({"not_worse_than": "baseline", "margin": 0.01, "bound": "value"}, "pass"),
        ({"better_than": "baseline"}, "inconclusive"),
        ({"better_than": "baseline", "margin": 0.1}, "fail"),
        ({"better_than": "baseline", "bound": "value"}, "fail"),
        ({"equivalent_to": "baseline", "margin": 0.05}, "pass"),
        ({"equivalent_to": "baseline", "margin": 0.01}, "inconclusive"),
        ({"equivalent_to": "baseline", "margin": 0.01, "bound": "value"}, "pass"),
        ({"equivalent_to": "baseline", "margin": 0.001, "bound": "value"}, "fail"),
    ],
)
def test_beside_a_baseline(client: httpx.Client, rule: Json, verdict: str) -> None:
    """0.898 against 0.9 on other samples."""
    run, baseline = keep(client, matrix(102, 2000)), keep(client, matrix(100, 2000))
    for metric, sign in (("accuracy", 1), ("error_rate", -1), ("h_mean", 1)):
        found = judged(client, {"metric": metric, **rule}, run, baseline)
        assert found["verdict"] == verdict, found
        assert found["quantity"] == "difference"
        assert found["value"] == pytest.approx(-0.002 * sign, abs=1e-6)
        assert found["value"] == pytest.approx(found["candidate_value"] - found["baseline_value"])
        assert found["low"] < found["value"] < found["high"]


def test_worse_for_certain(client: httpx.Client) -> None:
    run, baseline = keep(client, matrix(200)), keep(client, matrix(100))
    for bound in ("lower", "upper", "value"):
        rule = {"metric": "h_mean", "not_worse_than": "baseline", "margin": 0.05, "bound": bound}
        assert judged(client, rule, run, baseline)["verdict"] == "fail"
    assert judged(client, {"metric": "h_mean", "better_than": "baseline"}, baseline, run)["verdict"] == "pass"


def test_every_class_of_a_list_has_to_pass(client: httpx.Client) -> None:
    run = keep(client, [[480, 20, 0], [50, 450, 0], [100, 150, 250]], labels=["a", "b", "c"])
    found = judged(client, {"metric": "recall@*", "min": 0.8}, run)
    assert (found["verdict"], found["decided_by"], found["value"]) == ("fail", "recall@c", 0.5)
    assert {name: each["verdict"] for name, each in found["each"].items()} == {
        "recall@a": "pass", "recall@b": "pass", "recall@c": "fail",
    }  # fmt: skip
    # A guardrail of many classes asks more of each, since one failure is enough.
    guarded = judged(client, {"metric": "recall@*", "min": 0.8, "bound": "upper"}, run)
    guarded, found = guarded["each"]["recall@a"], found["each"]["recall@a"]
    assert guarded["decided_on"]["low"] < guarded["low"] == found["low"] == found["decided_on"]["low"]


def test_all_rules_together(client: httpx.Client, name: str) -> None:
    good, bad = {"metric": "accuracy", "min": 0.5}, {"metric": "accuracy", "min": 0.99}
    open_rule = {"metric": "accuracy", "min": 0.9}
    run = keep(client, matrix(51))
    for rules, verdict, code in (
        ([good], "pass", 0),
        ([good, open_rule], "inconclusive", 2),
        ([good, open_rule, bad], "fail", 1),
    ):
        put(client, name, *rules, status=201 if verdict == "pass" else 200)
        found = check(client, name, run)
        assert (found["verdict"], found["exit_code"], len(found["results"])) == (verdict, code, len(rules))
    assert [item["verdict"] for item in client.get(f"/v1/gates/{name}/checks").json()["items"]] == [
        "fail", "inconclusive", "pass",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "right"),
    [
        ({"metric": "recall@1", "min": 0.9}, 10),
        ({"metric": "recall@1", "not_changed_since": "last_change"}, 10),
        ({"metric": "recall@0", "min": 1.0}, 9.5),
    ],
)
def test_a_page_shows_rules_on_what_has_no_value_or_no_limits(
    client: httpx.Client, name: str, rule: Json, right: float
) -> None:
    run = keep(client, [[right, 0], [0, 0]])
    put(client, name, rule)
    for _ in range(2):
        assert check(client, name, run)["verdict"] == "inconclusive"
    page = client.get(f"/ui/gates/{name}")
    assert "blocks most often: 2 of 2 checks, 2 of them alone" in page.text, page.status_code


def test_rules_that_block_alike_are_counted(client: httpx.Client, name: str) -> None:
    run = keep(client, [[50, 50], [50, 50]])
    put(client, name, {"metric": "accuracy", "min": 0.9}, {"metric": "h_mean", "min": 0.9})
    for _ in range(2):
        check(client, name, run)
    page = client.get(f"/ui/gates/{name}").text
    assert "2 rules block most often: 2 of 2 checks each, 0 of them alone" in page


def test_home_has_the_last_check_of_the_split_that_it_shows(client: httpx.Client, name: str) -> None:
    put(client, name, {"metric": "accuracy", "min": 0.5})
    made = {}
    for split in ("a", "b"):
        body = evaluation(dataset=f"home of {name}", input=matrix_input(matrix(51)))
        body["dataset"]["split"] = split
        made[split] = check(client, name, create(client, body)["id"])["id"]
    for split, identifier in made.items():
        page = client.get("/ui", params={"dataset": f"home of {name}", "split": split})
        assert re.findall(r"/checks/([0-9a-f-]{36})", page.text) == [identifier]


@pytest.mark.parametrize("limits", [(0.885, 0.905), (0.905, 0.885)])
def test_a_text_names_as_many_samples_as_settle_all_rules_on_a_metric(
    client: httpx.Client, name: str, limits: tuple[float, float]
) -> None:
    put(client, name, *({"metric": "accuracy", "min": limit} for limit in limits))
    made = check(client, name, keep(client, matrix(51)))
    needed = [one["needed_samples"] for one in made["results"]]
    assert len({*needed} - {None}) == 2, needed
    text = client.get(f"/v1/gates/{name}/checks/{made['id']}", headers={"Accept": "text/plain"}).text
    assert f"SETTLE   about {about(max(needed))} samples for accuracy" in text


@pytest.mark.parametrize(("count", "left"), [(3, ""), (4, '1 more: in "results"')])
def test_a_text_says_three_reasons_and_how_many_more_there_are(
    client: httpx.Client, name: str, count: int, left: str
) -> None:
    put(client, name, *({"metric": "accuracy", "min": 0.95 + place / 100} for place in range(count)))
    made = check(client, name, keep(client, matrix(51)))["id"]
    text = client.get(f"/v1/gates/{name}/checks/{made}", headers={"Accept": "text/plain"}).text
    assert re.findall(r"\d+\s+more:\s+in\s+.results.", text) == ([left] if left else [])


def test_too_few_samples(client: httpx.Client, name: str) -> None:
    put(client, name, {"metric": "accuracy", "min": 0.5}, minimum_samples=2000)
    found = check(client, name, keep(client, matrix(51)))
    assert found["verdict"] == "inconclusive"
    assert found["results"][1]["needed_samples"] == 2000
    assert found["results"][1]["message"] == "2,000 samples are asked for, and there are fewer."
    weights = check(client, name, keep(client, [[1999.5, 0.5], [0.5, 1999.5]]))["results"][1]
    assert (weights["value"], weights["message"]) == (
        None, "2,000 samples are asked for, and how many there are is not known.",
    )  # fmt: skip
    assert check(client, name, keep(client, matrix(51, 2000)))["verdict"] == "pass"
    put(client, name, {"metric": "accuracy", "min": 0.5}, minimum_samples=1, status=200)
    assert check(client, name, keep(client, matrix(51)))["results"][1]["message"] == "1 sample is asked for."


def test_checks_are_kept_with_the_version_and_what_was_judged(client: httpx.Client, name: str) -> None:
    run, baseline = keep(client, matrix(51)), keep(client, matrix(50))
    put(client, name, {"metric": "accuracy", "not_worse_than": "baseline", "margin": 0.1})
    first = check(client, name, run, baseline)
    put(client, name, {"metric": "accuracy", "min": 0.99}, status=200)
    second = check(client, name, run, baseline)
    assert [found["gate"]["version"] for found in (first, second)] == ["1", "2"]
    assert first["evaluation"]["id"] == run
    assert first["baseline"]["id"] == baseline
    assert second["baseline"] is None
    assert first["evaluation"]["matrix_digest"] == second["evaluation"]["matrix_digest"]
    assert first["evaluation"]["matrix_digest"] != first["baseline"]["matrix_digest"]
    page = client.get(f"/v1/gates/{name}/checks", params={"limit": 1}).json()
    assert [item["id"] for item in page["items"]] == [second["id"]]
    rest = client.get(f"/v1/gates/{name}/checks", params={"limit": 1, "cursor": page["next_cursor"]}).json()
    assert [item["id"] for item in rest["items"]] == [first["id"]]
    assert rest["next_cursor"] is None
    assert rest["items"][0]["baseline"]["id"] == baseline


def test_the_same_check_says_the_same(client: httpx.Client, name: str) -> None:
    run = keep(client, matrix(51))
    put(client, name, {"metric": "bennett_s", "min": 0.8})
    assert check(client, name, run)["results"] == check(client, name, run)["results"]


def test_weights_are_judged_by_value_only(client: httpx.Client) -> None:
    run = keep(client, [[9.5, 0.5], [0.5, 9.5]])
    assert judged(client, {"metric": "accuracy", "min": 0.9, "bound": "value"}, run)["verdict"] == "pass"
    found = judged(client, {"metric": "accuracy", "min": 0.5}, run)
    assert (found["verdict"], found["low"]) == ("inconclusive", None)
    assert "without an interval" in found["message"]


def test_what_is_undefined_is_inconclusive(client: httpx.Client) -> None:
    found = judged(client, {"metric": "precision@1", "min": 0.5}, keep(client, [[10, 0], [5, 0]]))
    assert (found["verdict"], found["value"]) == ("inconclusive", None)
    assert "undefined" in found["message"]


@pytest.mark.parametrize("title", BODIES["putGate"])
def test_the_examples_of_the_documentation(client: httpx.Client, name: str, title: str) -> None:
    reply = client.put(f"/v1/gates/{name}", json=BODIES["putGate"][title])
    assert reply.status_code == 201, reply.text
    ids = keep(client, matrix(20)), keep(client, matrix(21))
    for body in BODIES["createCheck"].values():
        found = client.post(f"/v1/gates/{name}/checks", json=with_ids(body, *ids))
        assert found.status_code == 201, found.text
        answer_model(CheckAnswer).model_validate_json(found.content)


# What is refused.


@pytest.mark.parametrize(
    ("rule", "pointer", "code"),
    [
        ({"metric": "h_mean"}, "/rules/0", "wrong_value"),
        ({"metric": "h_mean", "min": 0.1, "max": 0.2}, "/rules/0", "wrong_value"),
        ({"metric": "h_mean", "min": 0.1, "margin": 0.2}, "/rules/0", "wrong_value"),
        ({"metric": "h_mean", "equivalent_to": "baseline"}, "/rules/0", "wrong_value"),
        ({"metric": "h_mean", "better_than": "baseline", "bound": "upper"}, "/rules/0", "wrong_value"),
        ({"metric": "h_mean", "not_worse_than": "champion"}, "/rules/0/not_worse_than", "wrong_value"),
        ({"metric": "h_mean", "not_worse_than": "baseline", "margin": -1}, "/rules/0/margin", "out_of_range"),
        ({"metric": "h_mean", "min": "high"}, "/rules/0/min", "wrong_type"),
        ({"metric": "h_meen", "min": 0.1}, "/rules/0/metric", "unknown_metric"),
        ({"metric": "min(", "min": 0.1}, "/rules/0/metric", "invalid_expression"),
        ({"metric": "", "min": 0.1}, "/rules/0/metric", "wrong_length"),
        ({"metric": "h_mean", "min": 0.1, "level": 1}, "/rules/0/level", "out_of_range"),
    ],
)
def test_rules_that_are_refused(client: httpx.Client, name: str, rule: Json, pointer: str, code: str) -> None:
    reply = client.put(f"/v1/gates/{name}", json={"rules": [rule]})
    problem = check_problem(reply, 422, reply.json()["code"])
    assert [(fault["pointer"], fault["code"]) for fault in problem["errors"]] == [(pointer, code)]
    check_problem(client.get(f"/v1/gates/{name}"), 404, "not_found")


def test_checks_that_are_refused(client: httpx.Client, name: str) -> None:
    run = keep(client, matrix(51))
    other = keep(client, [[9, 1, 0], [1, 9, 0], [0, 0, 9]])
    put(client, name, {"metric": "h_mean", "not_worse_than": "baseline"}, {"metric": "recall@0", "min": 0.1})
    url = f"/v1/gates/{name}/checks"
    problem = check_problem(client.post(url, json={"evaluation": run}), 422, "invalid_input")
    assert problem["errors"][0]["pointer"] == "/baseline"
    problem = check_problem(client.post(url, json={"evaluation": str(uuid4()), "baseline": run}), 404, "not_found")
    assert problem["errors"][0]["pointer"] == "/evaluation"
    problem = check_problem(client.post(url, json={"evaluation": run, "baseline": str(uuid4())}), 404, "not_found")
    assert problem["errors"][0]["pointer"] == "/baseline"
    problem = check_problem(client.post(url, json={"evaluation": run, "baseline": other}), 422, "different_labels")
    assert problem["errors"][0]["pointer"] == "/baseline"
    put(client, name, {"metric": "accuracy", "min": 0.1}, {"metric": "recall@horse", "min": 0.1}, status=200)
    problem = check_problem(client.post(url, json={"evaluation": run}), 422, "unknown_label")
    assert problem["errors"][0]["pointer"] == "/rules/1/metric"
    put(client, name, {"metric": "prevalence@0", "better_than": "baseline"}, status=200)
    check_problem(client.post(url, json={"evaluation": run, "baseline": run}), 422, "not_comparable")
    assert client.get(url).json()["items"] == []


@pytest.mark.parametrize("name", ["-x", "a b", "a" * 129, "ä"])
def test_names_that_are_refused(client: httpx.Client, name: str) -> None:
    reply = client.put(f"/v1/gates/{name}", json={"rules": [{"metric": "h_mean", "min": 0.1}]})
    check_problem(reply, 422, "invalid_path")


def test_what_does_not_exist(client: httpx.Client, name: str) -> None:
    for path in ("", "/versions", "/checks", f"/checks/{uuid4()}"):
        check_problem(client.get(f"/v1/gates/{name}{path}"), 404, "not_found")
    check_problem(client.post(f"/v1/gates/{name}/checks", json={"evaluation": str(uuid4())}), 404, "not_found")


def test_many_at_once_make_versions_without_gaps(client: httpx.Client, base_url: str, name: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def put_one(index: int) -> int:
        with httpx.Client(base_url=base_url, headers=client.headers, timeout=60) as own:
            rule = {"metric": "h_mean", "min": 0.1 + index / 100}
            return int(own.put(f"/v1/gates/{name}", json={"rules": [rule]}).json()["version"])

    with ThreadPoolExecutor(8) as pool:
        versions = sorted(pool.map(put_one, range(8)))
    assert versions == list(range(1, 9))
    listed = client.get(f"/v1/gates/{name}/versions").json()["items"]
    assert [int(gate["version"]) for gate in listed] == versions[::-1]


# What a gate applies to, and trials.


def kept_of(client: httpx.Client, dataset: str, rows: Matrix, model: str = "m", split: str | None = None) -> str:
    body = {
        "model": {"name": model},
        "dataset": {"name": dataset, "split": split},
        "input": {"kind": "confusion_matrix", "matrix": rows},
    }
    reply = client.post("/v1/evaluations", json=body)
    assert reply.status_code == 201, reply.text
    identifier: str = reply.json()["id"]
    return identifier


def test_a_gate_is_for_the_data_that_it_names(client: httpx.Client, name: str) -> None:
    data = uuid4().hex
    old = kept_of(client, data, matrix(40), split="test")
    mine, other = kept_of(client, data, matrix(50), split="test"), kept_of(client, uuid4().hex, matrix(50))
    kept_of(client, data, matrix(450), split="train")
    place = {"dataset": {"name": data, "split": "test"}}
    made = put(client, name, {"metric": "accuracy", "min": 0.8}, applies_to=place)
    assert made["applies_to"] == place
    assert client.get(f"/v1/gates/{name}").json() == made
    assert check(client, name, old)["verdict"] == "pass"
    reply = client.post(f"/v1/gates/{name}/checks", json={"evaluation": other})
    problem = check_problem(reply, 422, "gate_is_for_other_data")
    assert f"dataset {data} test" in problem["detail"]
    # A reference looks among the data that the gate is for.
    found = client.post(f"/v1/gates/{name}/checks", json={"evaluation": {"model": {"name": "m"}}}).json()
    assert found["evaluation"]["id"] == mine
    # Also where it says a part of that itself: the latest run of the data is one of another split.
    found = client.post(f"/v1/gates/{name}/checks", json={"evaluation": {"dataset": {"name": data}}}).json()
    assert found["evaluation"]["id"] == mine
    # The baseline may be another model, of the same data.
    put(client, name, {"metric": "accuracy", "not_worse_than": "baseline", "margin": 0.2}, status=200,
        applies_to={**place, "model": {"name": "m"}})  # fmt: skip
    champion = kept_of(client, data, matrix(45), "champion", split="test")
    assert check(client, name, mine, champion)["verdict"] == "pass"
    for body in ({"evaluation": champion, "baseline": mine}, {"evaluation": mine, "baseline": other}):
        check_problem(client.post(f"/v1/gates/{name}/checks", json=body), 422, "gate_is_for_other_data")


def test_a_gate_is_for_a_version_that_is_named_in_one_text(client: httpx.Client, name: str) -> None:
    """As a reference names it, which is looked for among the tags of the gate too."""
    model = uuid4().hex
    for version, tags in (("1", {"stage": "old"}), ("1", {}), ("2", {})):
        body = evaluation(model=model, input=matrix_input(matrix(50)), tags={**tags, "kind": "nightly"})
        body["model"]["version"] = version
        create(client, body)
    place = {"model": {"name": f"{model}:1"}, "tags": {"stage": "old"}}
    put(client, name, {"metric": "accuracy", "min": 0.8}, applies_to=place)
    for asked in (f"{model}:1", {"tags": {"kind": "nightly"}}):
        reply = client.post(f"/v1/gates/{name}/checks", json={"evaluation": asked})
        assert reply.status_code == 201, reply.text
        run = reply.json()["evaluation"]
        assert (run["model"]["version"], run["tags"]["stage"]) == ("1", "old")
    reply = client.post(f"/v1/gates/{name}/checks", json={"evaluation": f"{model}:2"})
    check_problem(reply, 404, "not_found")


@pytest.mark.parametrize(
    ("rule", "pointer", "said"),
    [
        ({"metric": "accuracy", "min": 80}, "/rules/0/min", "accuracy lies between 0 and 1, got 80: did you mean 0.8?"),
        ({"metric": "mcc", "max": -1.5}, "/rules/0/max", "mcc lies between -1 and 1, got -1.5"),
        ({"metric": "log_loss", "max": -0.1}, "/rules/0/max", "log_loss is at least 0, got -0.1"),
        ({"metric": "mean(recall@*)", "min": 1.2}, "/rules/0/min", "lies between 0 and 1"),
        (
            {"metric": "accuracy", "not_worse_than": "baseline", "margin": 2},
            "/rules/0/margin",
            "a difference in accuracy lies between 0 and 1, got 2: did you mean 0.02?",
        ),
    ],
)
def test_a_limit_outside_of_the_range_is_refused(
    client: httpx.Client, name: str, rule: Json, pointer: str, said: str
) -> None:
    problem = check_problem(client.put(f"/v1/gates/{name}", json={"rules": [rule]}), 422, "invalid_input")
    assert [(fault["pointer"], fault["code"]) for fault in problem["errors"]] == [(pointer, "out_of_range")]
    assert said in problem["errors"][0]["detail"]
    assert client.get(f"/v1/gates/{name}").status_code == 404


def test_rules_are_tried_and_nothing_is_kept(client: httpx.Client, name: str) -> None:
    data = uuid4().hex
    runs = [kept_of(client, data, matrix(wrong)) for wrong in (30, 100, 300)]
    three = kept_of(client, data, [[9, 1, 0], [1, 9, 0], [0, 1, 9]])
    put(client, name, {"metric": "accuracy", "min": 0.5})
    body: Json = {
        "rules": [{"metric": "accuracy", "min": 0.8}, {"metric": "recall@1", "min": 0.1}],
        "evaluations": {"latest": 20, "dataset": {"name": data}},
    }
    reply = client.post("/v1/gates/trials", json=body)
    assert reply.status_code == 200, reply.text
    check_json(reply)
    check_shape(reply, GateTrial)
    found = reply.json()
    assert [one["evaluation"]["id"] for one in found["items"]] == [three, *reversed(runs)]
    assert [one["tried"]["verdict"] for one in found["items"]] == ["inconclusive", "fail", "inconclusive", "pass"]
    assert "saved" not in found["items"][0]
    assert found["items"][3]["tried"]["results"][0] == judged(client, body["rules"][0], runs[0])
    beside = client.post("/v1/gates/trials", json={**body, "gate": name}).json()
    assert (beside["gate"]["name"], beside["gate"]["version"]) == (name, "1")
    assert [one["saved"]["verdict"] for one in beside["items"]] == ["pass", "fail", "pass", "pass"]
    assert client.get(f"/v1/gates/{name}/checks").json()["items"] == []
    # A run that the rules make no sense for says why, and the others are answered.
    strange = {**body, "rules": [{"metric": "recall@2", "min": 0.1}]}
    items = client.post("/v1/gates/trials", json=strange).json()["items"]
    assert [one["tried"]["verdict"] for one in items] == ["pass", None, None, None]
    assert "2" in items[1]["tried"]["reason"]
    (one,) = client.post("/v1/gates/trials", json={**body, "evaluations": {"id": runs[0]}}).json()["items"]
    assert one == found["items"][3]
    for evaluations, status in (({"id": str(uuid4())}, 404), ({"id": runs[0], "latest": 3}, 422)):
        assert client.post("/v1/gates/trials", json={**body, "evaluations": evaluations}).status_code == status
    few = client.post("/v1/gates/trials", json={**body, "evaluations": {"latest": 1, "dataset": {"name": data}}})
    assert len(few.json()["items"]) == 1
    check_problem(client.post("/v1/gates/trials", json={**body, "gate": "nobody-has-put-it"}), 404, "not_found")
    compared = {**body, "rules": [{"metric": "accuracy", "better_than": "baseline"}]}
    check_problem(client.post("/v1/gates/trials", json=compared), 422, "invalid_input")
    verdicts = client.post("/v1/gates/trials", json={**compared, "baseline": runs[1]}).json()["items"]
    assert [one["tried"]["verdict"] for one in verdicts] == [None, "fail", "inconclusive", "pass"]
