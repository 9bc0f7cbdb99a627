"""Names in sentences, sent as tags: what seqeval says of them, and limits by resampling sentences."""

import json
from pathlib import Path

import httpx
import pytest

from tests.api.answers import check_problem, compute, create, evaluation
from tests.bank import each

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "seqeval.json").read_text(encoding="utf-8"))
TRUE = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG", "O"], ["O", "O"]]
SAID = [["B-PER", "I-PER", "O", "O"], ["O", "B-LOC", "O"], ["O", "O"]]
SOURCE = {"kind": "sets", "tagging": "BIO", "y_true": TRUE, "y_pred": SAID}
POOLED = ["pooled_precision", "pooled_recall", "pooled_f1"]


@each("case", range(len(RECORDED["cases"])))
def test_values_of_seqeval(client: httpx.Client, case: int) -> None:
    true, said, values = RECORDED["cases"][case]
    answer = compute(client, {**SOURCE, "y_true": true, "y_pred": said}, metrics=POOLED, intervals="all")
    assert [answer["requested"][name] for name in POOLED] == pytest.approx(values, rel=1e-12)
    for name in POOLED:
        assert answer["intervals"][name]["low"] < answer["requested"][name] < answer["intervals"][name]["high"]


def test_entities_are_their_types_and_places(client: httpx.Client) -> None:
    found = compute(client, SOURCE, metrics=[*POOLED, "subset_accuracy"])["requested"]
    assert found == {
        "pooled_precision": pytest.approx(1 / 2),
        "pooled_recall": pytest.approx(1 / 3),
        "pooled_f1": pytest.approx(2 / 5),
        "subset_accuracy": pytest.approx(1 / 3),
    }


def test_runs_are_paired_by_sentence(client: httpx.Client) -> None:
    ids = {"sample_ids": ["s1", "s2", "s3"]}
    runs = [
        create(client, evaluation(input={**SOURCE, **ids, "y_pred": said}, model=name))["id"]
        for name, said in (("tagger", SAID), ("better", TRUE))
    ]
    reply = client.post("/v1/comparisons", json={"evaluations": runs, "metrics": ["pooled_f1"]})
    assert reply.status_code == 201, reply.text
    assert reply.json()["design"]["paired"] is True


@each(
    ("members", "pointer", "code"),
    [
        ({"y_true": [["B-PER", "X"], *TRUE[1:]]}, "/input/y_true/0/1", "wrong_value"),
        ({"y_true": [["B-"], *TRUE[1:]]}, "/input/y_true/0/0", "wrong_value"),
        ({"y_true": [[1], *TRUE[1:]]}, "/input/y_true/0/0", "wrong_value"),
        ({"y_pred": [["O"], *SAID[1:]]}, "/input/y_pred/0", "wrong_length"),
        ({"tagging": "BILOU"}, "/input/tagging", "wrong_value"),
        (
            {"y_true": None, "y_pred": None, "n_true": [1], "n_predicted": [1], "n_common": [1]},
            "/input/tagging",
            "one_of",
        ),
    ],
)
def test_faults_have_their_place(client: httpx.Client, members: dict[str, object], pointer: str, code: str) -> None:
    source = {name: value for name, value in {**SOURCE, **members}.items() if value is not None}
    refused = "invalid_request" if pointer == "/input/tagging" and code == "wrong_value" else "invalid_input"
    problem = check_problem(client.post("/v1/metrics/compute", json={"input": source}), 422, refused)
    assert (problem["errors"][0]["pointer"], problem["errors"][0]["code"]) == (pointer, code)
