"""Comparisons in each slice: those of runs that have nothing but its samples."""

from typing import Any

import httpx
import numpy as np
import pytest

from tests.api.answers import Json, check_problem, create, evaluation

N = 240
RANDOM = np.random.default_rng(11)
TRUTH = np.where(RANDOM.random(N) < 0.4, "D", "healthy")
SITE = RANDOM.choice(["A", "B"], N).tolist()
SITE[:5] = [None] * 5
METRICS = ["recall@*", "accuracy", "roc_auc@D"]


def source(right: float, rows: list[int], seed: int) -> Json:
    random = np.random.default_rng(seed)
    sure = np.clip(0.5 + 0.3 * np.where(random.random(N) < right, 1, -1) + random.normal(0, 0.1, N), 0.01, 0.99)
    sick = np.where(TRUTH == "D", sure, 1.0 - sure)
    return {
        "kind": "probabilities",
        "labels": ["healthy", "D"],
        "positive": "D",
        "y_true": TRUTH[rows].tolist(),
        "probabilities": np.column_stack([1.0 - sick, sick])[rows].tolist(),
        "sample_ids": rows,
        "attributes": {"site": [SITE[row] for row in rows]},
    }


def runs(client: httpx.Client, dataset: str, rows: list[int]) -> list[str]:
    inputs = [source(right, rows, seed) for seed, right in enumerate((0.9, 0.7))]
    return [
        create(client, evaluation(input=one, model=f"m{place}", dataset=dataset))["id"]
        for place, one in enumerate(inputs)
    ]


def compared(client: httpx.Client, identifiers: list[str], **more: Any) -> Json:
    body = {"evaluations": identifiers, "metrics": METRICS, "seed": 1, **more}
    reply = client.post("/v1/comparisons", json=body)
    assert reply.status_code == 201, reply.text
    answer: Json = reply.json()
    return answer


def without(pair: Json) -> Json:
    return {name: one for name, one in pair.items() if name not in ("a", "b", "p_adjusted", "verdict")}


def test_a_slice_is_compared_as_runs_of_its_samples_are(client: httpx.Client) -> None:
    whole = runs(client, "whole", [*range(N)])
    found = compared(client, whole, by=["site"])
    plain = compared(client, whole)
    assert found["metrics"] == plain["metrics"]
    assert "slices" not in plain
    assert [one["where"] for one in found["slices"]] == [{"site": "A"}, {"site": "B"}]
    assert compared(client, whole, by=["site", "site"])["slices"] == found["slices"]
    assert "Left out, with fewer than 30 samples in a run: no site." in " ".join(found["notes"])
    decided = 0
    for one in found["slices"]:
        rows = [row for row in range(N) if SITE[row] == one["where"]["site"]]
        alone = compared(client, runs(client, f"site {one['where']['site']}", rows))["metrics"]
        assert one["n_samples"] == [len(rows)] * 2
        for name, metric in one["metrics"].items():
            assert metric["values"] == alone[name]["values"], name
            own, of_alone = metric["differences"][0], alone[name]["differences"][0]
            assert without(own) == without(of_alone), name
            decided += own["verdict"] == of_alone["verdict"] == "better"
            if own["p_adjusted"] is not None and own["p_adjusted"] >= 0.05:
                assert own["verdict"] in ("undecided", "same"), name
    assert decided
    p = [one["metrics"]["accuracy"]["differences"][0] for one in found["slices"]]
    smallest = min(one["p_value"] for one in p)
    # Holm over both slices.
    assert min(one["p_adjusted"] for one in p) == pytest.approx(min(2.0 * smallest, 1.0))
    text = client.get(f"/v1/comparisons/{found['id']}", headers={"Accept": "text/plain"}).text
    assert "site A" in text


def simpson(
    client: httpx.Client,
    second: tuple[float, float],
    sizes_of: tuple[tuple[int, int], ...] = ((300, 700), (700, 300)),
) -> Json:
    """Two runs on samples of their own: the second has more from the easy site, and so much is right at both sites."""
    made = []
    right = {"A": (0.9, second[0]), "B": (0.6, second[1])}
    for place, sizes in enumerate(sizes_of):
        truth, guess, site = [], [], []
        for name, size in zip("AB", sizes, strict=True):
            hits = round(size * right[name][place])
            truth += ["x", "y"] * (size // 2)
            wrong = ["y", "x"] * (size // 2)
            guess += [*truth[-size:][:hits], *wrong[hits:]]
            site += [name] * size
        inputs = {"kind": "predictions", "y_true": truth, "y_pred": guess, "attributes": {"site": site}}
        made.append(
            create(client, evaluation(input=inputs, model=f"s{place}", dataset=f"simpson {second} {sizes_of} {place}"))[
                "id"
            ]
        )
    return compared(client, made, metrics=["accuracy"], by=["site"])


def test_an_order_that_turns_in_every_slice_is_said(client: httpx.Client) -> None:
    found = simpson(client, (0.85, 0.55))
    assert found["metrics"]["accuracy"]["differences"][0]["verdict"] == "worse"
    assert [round(one["metrics"]["accuracy"]["differences"][0]["difference"], 2) for one in found["slices"]] == [
        0.05
    ] * 2
    (said,) = (one for one in found["findings"] if one["code"] == "order_turns_in_slices")
    assert (said["evidence"]["metric"], said["evidence"]["by"]) == ("accuracy", "site")
    assert "accuracy of s0 is lower than that of s1 over all samples" in said["message"]
    for second in ((0.95, 0.65), (0.85, 0.6)):
        assert "findings" not in simpson(client, second), second
    # One slice that is large enough is no order in every slice.
    alone = simpson(client, (0.95, 0.4), ((500, 20), (500, 3000)))
    assert [one["where"] for one in alone["slices"]] == [{"site": "A"}]
    assert alone["metrics"]["accuracy"]["differences"][0]["verdict"] == "better"
    assert "findings" not in alone


def test_what_cannot_be_compared_by_slices_is_refused(client: httpx.Client) -> None:
    whole = runs(client, "refused", [*range(N)])
    for more, code in (
        ({"by": ["sight"]}, "invalid_input"),
        ({"by": ["site"], "multiplicity": "max_t"}, "invalid_request"),
    ):
        reply = client.post("/v1/comparisons", json={"evaluations": whole, "metrics": ["accuracy"], **more})
        check_problem(reply, 422, code)
    bare = [create(client, evaluation(model=f"bare{place}"))["id"] for place in range(2)]
    reply = client.post("/v1/comparisons", json={"evaluations": bare, "by": ["site"]})
    problem = check_problem(reply, 422, "invalid_input")
    assert problem["errors"][0]["pointer"] == "/by"
