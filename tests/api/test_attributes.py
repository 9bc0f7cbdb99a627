"""Attributes of samples, and slices by them: what is read of a slice is what its samples say alone."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
import pytest

from tests.api.answers import check_problem, compute, create, evaluation, refused, same_numbers
from tests.api.test_multipart import FORMATS, send

Json = dict[str, Any]
N = 60
_RANDOM = np.random.default_rng(5)
SITES = ["A", "B", None]
ATTRIBUTES = {
    "site": [SITES[place] for place in _RANDOM.integers(3, size=N)],
    "age": [
        None if one % 7 == 0 else int(one) if one % 2 else float(one) + 0.5 for one in _RANDOM.integers(90, size=N)
    ],
    "smokes": _RANDOM.integers(2, size=N).astype(bool).tolist(),
}
LABELS = ["D", "healthy", "other"]
TRUTH = [LABELS[place] for place in _RANDOM.integers(3, size=N)]
GUESS = [LABELS[place] for place in _RANDOM.integers(3, size=N)]
_ROWS = np.round(_RANDOM.dirichlet(np.ones(3), N), 6)
_ROWS[:, 2] = 1 - _ROWS[:, 0] - _ROWS[:, 1]
BESIDE = {
    "sample_ids": [f"s{place}" for place in range(N)],
    "sample_weight": _RANDOM.integers(1, 4, size=N).tolist(),
    "group_ids": _RANDOM.integers(25, size=N).tolist(),
}
PREDICTIONS: Json = {"kind": "predictions", "y_true": TRUTH, "y_pred": GUESS, "labels": LABELS}
PROBABILITIES: Json = {"kind": "probabilities", "y_true": TRUTH, "probabilities": _ROWS.tolist(), "labels": LABELS}
SCORES: Json = {
    "kind": "scores",
    "y_true": [int(one == "D") for one in TRUTH],
    "scores": _ROWS[:, 0].tolist(),
    "labels": [0, 1],
    "threshold": 0.4,
}
MULTILABEL: Json = {
    "kind": "multilabel",
    "y_true": _RANDOM.integers(2, size=(N, 3)).tolist(),
    "y_pred": _RANDOM.integers(2, size=(N, 3)).tolist(),
    "labels": ["cat", "dog", "cow"],
}
RANKING: Json = {
    "kind": "ranking",
    "query_ids": [place // 5 for place in range(N)],
    "relevance": _RANDOM.integers(3, size=N).tolist(),
    "scores": _RANDOM.integers(9, size=N).tolist(),
}
OF_QUERIES = {"site": [SITES[place // 5 % 3] for place in range(N)]}
CASES = {
    "predictions": (PREDICTIONS, ATTRIBUTES),
    "weights": (PREDICTIONS | {"sample_weight": BESIDE["sample_weight"]}, ATTRIBUTES),
    "groups": (PREDICTIONS | {"group_ids": BESIDE["group_ids"]}, ATTRIBUTES),
    "probabilities": (PROBABILITIES | {"sample_ids": BESIDE["sample_ids"]}, ATTRIBUTES),
    "scores": (SCORES, ATTRIBUTES),
    "multilabel": (MULTILABEL, ATTRIBUTES),
    "ranking": (RANKING, OF_QUERIES),
}


def some(source: Json, rows: Sequence[int]) -> Json:
    return {
        name: [value[row] for row in rows] if isinstance(value, list) and len(value) == N else value
        for name, value in source.items()
    }


def of_slice(client: httpx.Client, identifier: str, where: str, path: str = "", **params: Any) -> httpx.Response:
    return client.get(f"/v1/evaluations/{identifier}{path}", params={"slice": where, **params})


@pytest.mark.parametrize("case", CASES)
def test_a_slice_is_what_its_samples_are_alone(client: httpx.Client, case: str) -> None:
    source, attributes = CASES[case]
    body = evaluation(input=source | {"attributes": attributes}, options={"seed": 1}, dataset=case)
    identifier = create(client, body)["id"]
    rows = [row for row in range(N) if attributes["site"][row] == "B"]
    alone = compute(client, some(source, rows), seed=1)
    reply = of_slice(client, identifier, 'site="B"')
    assert reply.status_code == 200, reply.text
    answer = reply.json()
    size = len({source["query_ids"][row] for row in rows}) if case == "ranking" else len(rows)
    of = N // 5 if case == "ranking" else N
    assert answer["input"].pop("slice") == {"where": 'site="B"', "size": size, "of": of}
    for name in ("input", "metrics", "per_class", "intervals", "findings", "headline"):
        if name in alone:
            same_numbers(answer[name], alone[name], name, rel=1e-9)
    # The whole is as it was.
    assert "slice" not in client.get(f"/v1/evaluations/{identifier}").json()["input"]


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("site=null", lambda site, *_: site is None),
        ('site!="A"', lambda site, *_: site != "A"),
        ('site in ("A", null)', lambda site, *_: site in ("A", None)),
        ("age<40", lambda _, age, __: age is not None and age < 40),
        ("age>=40, smokes=true", lambda _, age, smokes: age is not None and age >= 40 and smokes),
        ('"age" > 10.5, age <= 70', lambda _, age, __: age is not None and 10.5 < age <= 70),
    ],
)
def test_conditions(client: httpx.Client, where: str, kept: Any) -> None:
    source = PREDICTIONS | {"attributes": ATTRIBUTES}
    identifier = create(client, evaluation(input=source, dataset="conditions"))["id"]
    rows = [row for row, values in enumerate(zip(*ATTRIBUTES.values(), strict=True)) if kept(*values)]
    assert 0 < len(rows) < N
    answer = of_slice(client, identifier, where).json()
    assert answer["input"]["n_samples"] == len(rows)
    assert answer["input"]["confusion_matrix"] == compute(client, some(PREDICTIONS, rows))["input"]["confusion_matrix"]
    # What is answered can be asked.
    again = of_slice(client, identifier, answer["input"]["slice"]["where"]).json()
    assert again["input"]["confusion_matrix"] == answer["input"]["confusion_matrix"]


@pytest.mark.parametrize(
    ("where", "code", "said"),
    [
        ('sit="B"', "unknown_name", "did you mean 'site'?"),
        ('site="b"', "unknown_value", 'did you mean "B"'),
        ("site=B", "invalid_expression", 'did you mean "B"?'),
        ("site<3", "not_a_number", "expected numbers on both sides of <"),
        ("age<", "invalid_expression", "got the end"),
        ("age>1000", "no_such_slice", "got one without any"),
    ],
)
def test_slices_that_there_are_not(client: httpx.Client, where: str, code: str, said: str) -> None:
    source = PREDICTIONS | {"attributes": ATTRIBUTES}
    identifier = create(client, evaluation(input=source, dataset="none"))["id"]
    problem = check_problem(of_slice(client, identifier, where), 422, "invalid_input")
    (fault,) = problem["errors"]
    assert (fault["parameter"], fault["code"]) == ("slice", code)
    assert said in fault["detail"]


def test_everything_of_one_slice(client: httpx.Client) -> None:
    body = evaluation(input=PROBABILITIES | {"attributes": ATTRIBUTES}, options={"seed": 1}, dataset="everything")
    identifier = create(client, body)["id"]
    rows = [row for row in range(N) if ATTRIBUTES["smokes"][row]]
    alone = some(PROBABILITIES, rows)
    params = {"class": "D"}
    found = of_slice(client, identifier, "smokes=true", "/curves/roc", **params).json()
    expected = client.post("/v1/curves/roc", json={"input": alone, "class": "D"}).json()
    assert (found["y"], found["area"]) == (expected["y"], expected["area"])
    matrix = of_slice(client, identifier, "smokes=true", "/confusion-matrix").json()
    assert np.sum(matrix["confusion_matrix"]) == len(rows)
    sliced = f"/v1/evaluations/{identifier}/{{}}?slice=" + quote("smokes=true")
    asked = {"objective": "h_mean", "seed": 1}
    rule = client.post(sliced.format("thresholds"), json=asked).json()
    same = client.post("/v1/thresholds", json=asked | {"input": alone}).json()
    assert rule["objective"] == same["objective"]
    assert rule["confusion_matrix"] == same["confusion_matrix"]
    shares = {"metrics": ["accuracy"], "prevalence": {"D": 0.01}, "seed": 1}
    projected = client.post(sliced.format("projections"), json=shares).json()
    assert projected["metrics"] == client.post("/v1/projections", json=shares | {"input": alone}).json()["metrics"]
    beside = {
        "sweep": {"class": "D", "from": 0.1, "to": 0.9, "steps": 2},
        "against": {"dataset": {"name": "everything"}},
    }
    assert client.post(sliced.format("projections"), json=shares | beside | {"prevalence": None}).status_code == 200
    plot = of_slice(client, identifier, "smokes=true", "/plots/roc.json", **params)
    assert plot.status_code == 200
    report = of_slice(client, identifier, "smokes=true", "/report")
    assert "slice smokes=true" in report.text
    assert f"{len(rows)} of {N} samples" in report.text


def test_a_slice_of_a_cross_validation_is_that_of_all_its_samples(client: httpx.Client) -> None:
    half = N // 2
    folds = [
        {name: value[rows] if isinstance(value, list) and len(value) == N else value for name, value in SCORES.items()}
        | {"attributes": {"site": ATTRIBUTES["site"][rows]}, "threshold": threshold}
        for rows, threshold in ((slice(half), 0.3), (slice(half, N), 0.4))
    ]
    body = evaluation(input={"kind": "folds", "folds": folds}, dataset="folds")
    identifier = create(client, body)["id"]
    answer = of_slice(client, identifier, 'site in ("A", "B")').json()
    rows = [row for row in range(N) if ATTRIBUTES["site"][row]]
    auc = compute(client, some(SCORES, rows))["per_class"]["1"]["prevalence_insensitive"]["roc_auc"]
    assert answer["input"]["threshold"] == [0.3, 0.4]
    assert answer["input"]["n_samples"] == len(rows)
    assert answer["per_class"]["1"]["prevalence_insensitive"]["roc_auc"] == pytest.approx(auc, rel=1e-12)


def test_samples_without_attributes(client: httpx.Client) -> None:
    plain = create(client, evaluation(input=PROBABILITIES, dataset="plain"))["id"]
    problem = check_problem(of_slice(client, plain, "a=1"), 422, "invalid_input")
    assert problem["errors"][0]["code"] == "no_attributes"
    matrix = create(client, evaluation(dataset="matrix"))["id"]
    check_problem(of_slice(client, matrix, "a=1"), 409, "no_samples_kept")


@pytest.mark.parametrize("form", FORMATS)
def test_attributes_in_files(client: httpx.Client, form: str) -> None:
    columns = {"y_true": TRUTH, "y_pred": GUESS, "where": ATTRIBUTES["site"], "smokes": ATTRIBUTES["smokes"]}
    columns |= {"years": ATTRIBUTES["age"]}
    names = {"site": "where", "smokes": "smokes", "age": "years"}
    if form == "npz":
        # Arrays have no missing entries.
        columns["where"] = [one or "C" for one in ATTRIBUTES["site"]]
        columns["years"] = [0.0 if one is None else one for one in ATTRIBUTES["age"]]
    data = FORMATS[form](columns)
    source = {"kind": "predictions", "labels": LABELS, "columns": {"attributes": names}}
    members = {"model": {"name": "m"}, "dataset": {"name": f"file {form}"}}
    reply = send(client, source, data, "/v1/evaluations", **members)
    assert reply.status_code == 201, reply.text
    for where, kept in {
        'site="B"': lambda row: ATTRIBUTES["site"][row] == "B",
        "smokes=true": lambda row: ATTRIBUTES["smokes"][row],
        "age>50": lambda row: (ATTRIBUTES["age"][row] or 0) > 50,
        **({} if form == "npz" else {"site=null": lambda row: ATTRIBUTES["site"][row] is None}),
    }.items():
        answer = of_slice(client, reply.json()["id"], where).json()
        assert answer["input"]["n_samples"] == sum(map(kept, range(N))), where


def test_columns_that_files_lack(client: httpx.Client) -> None:
    data = FORMATS["csv"]({"y_true": TRUTH, "y_pred": GUESS})
    source = {"kind": "predictions", "columns": {"attributes": {"site": "hospital"}}}
    problem = check_problem(send(client, source, data), 422, "invalid_input")
    assert problem["errors"][0]["code"] == "missing_column"
    assert problem["errors"][0]["pointer"] == "/input/columns/attributes/site"
    source = {"kind": "predictions", "columns": {"attributes": ["site"]}}
    check_problem(send(client, source, data), 422, "invalid_request")


def test_items_of_one_query_have_one_value(client: httpx.Client) -> None:
    fault = refused(client, RANKING | {"attributes": {"site": ["A", "B"] * (N // 2)}})
    assert (fault["code"], fault["pointer"]) == ("attribute_differs", "/input/attributes/site/1")
    apart = {
        "kind": "ranking",
        "judgements": {"query_ids": [1, 1], "item_ids": [1, 2], "relevance": [1, 0]},
        "retrieved": {"query_ids": [1], "item_ids": [1], "scores": [1]},
        "attributes": {"site": ["A", "B"]},
    }
    assert refused(client, apart)["code"] == "attribute_differs"
