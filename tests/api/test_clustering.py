"""Clusterings over HTTP: what comes in, what is answered at once and later, what is refused."""

import io
from itertools import permutations
from operator import and_, eq
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import entropy
from sklearn.datasets import load_wine

from tests.api.answers import Json, check_problem, compute, create, evaluation, refused
from tests.api.decisions import compare
from tests.bank import each
from tests.witnesses import sk

WINE = load_wine()
FEATURES = (WINE.data - WINE.data.mean(axis=0)) / WINE.data.std(axis=0)
NAMES = ["barolo", "grignolino", "barbera"]
TRUTH = [NAMES[code] for code in WINE.target]


def clusters(count: int, seed: int = 0) -> list[int]:
    from sklearn.cluster import KMeans

    found: list[int] = KMeans(count, n_init=3, random_state=seed).fit_predict(FEATURES).tolist()
    return found


THREE, SIX = clusters(3), clusters(6)
IDS = [f"w{place}" for place in range(len(TRUTH))]
TABLE = sk.cluster.contingency_matrix(TRUTH, THREE)
SOURCE: Json = {"kind": "clustering", "y_true": TRUTH, "y_pred": THREE}


def values(answer: Json) -> dict[str, Any]:
    return {**answer["metrics"]["prevalence_sensitive"], **answer["metrics"]["prevalence_insensitive"]}


EXPECTED = {
    "rand_index": sk.rand_score,
    "adjusted_rand": sk.adjusted_rand_score,
    "pair_fowlkes_mallows": sk.fowlkes_mallows_score,
    "homogeneity": sk.homogeneity_score,
    "completeness": sk.completeness_score,
    "v_measure": sk.v_measure_score,
    "mutual_information": sk.mutual_info_score,
    "normalized_mutual_information": sk.normalized_mutual_info_score,
    "adjusted_mutual_information": sk.adjusted_mutual_info_score,
}


def test_the_report_has_what_scikit_learn_has(client: httpx.Client) -> None:
    answer = compute(client, {**SOURCE, "features": FEATURES.tolist()})
    found = values(answer)
    for key, witness in EXPECTED.items():
        assert found[key] == pytest.approx(witness(TRUTH, THREE), rel=1e-12), key
    assert found["silhouette"] == pytest.approx(sk.silhouette_score(FEATURES, THREE), rel=1e-12)
    assert found["davies_bouldin"] == pytest.approx(sk.davies_bouldin_score(FEATURES, THREE), rel=1e-12)
    assert found["calinski_harabasz"] == pytest.approx(sk.calinski_harabasz_score(FEATURES, THREE), rel=1e-12)
    assert answer["metrics"]["prevalence_insensitive"].keys() == {"dunn"}
    assert answer["input"]["n_samples"] == 178
    assert answer["input"]["labels"] == sorted(NAMES)
    assert answer["input"]["clusters"] == ["0", "1", "2"]
    assert answer["input"]["contingency"] == TABLE.tolist()
    assert answer["input"]["n_features"] == 13
    assert "confusion_matrix" not in answer["input"]
    assert answer["per_class"] == {}


def test_a_table_and_its_samples_are_one_evaluation(client: httpx.Client) -> None:
    table = {"kind": "clustering", "contingency": TABLE.tolist(), "classes": sorted(NAMES), "clusters": ["a", "b", "c"]}
    found, samples = compute(client, table), compute(client, SOURCE)
    assert found["metrics"] == samples["metrics"]
    assert found["intervals"] == samples["intervals"]
    assert found["input"]["clusters"] == ["a", "b", "c"]


def test_twins_have_classes_of_one_size(client: httpx.Client) -> None:
    answer = compute(client, {"kind": "clustering", "contingency": [[30, 10], [1, 9]]})
    equal = compute(client, {"kind": "clustering", "contingency": [[30, 10], [4, 36]]})
    twins = answer["metrics"]["at_balanced_prevalence"]
    assert twins.keys() == {
        "purity", "inverse_purity", "homogeneity", "completeness", "v_measure", "mutual_information",
        "normalized_mutual_information",
    }  # fmt: skip
    assert twins == pytest.approx({key: values(equal)[key] for key in twins}, rel=1e-12)


def test_limits(client: httpx.Client) -> None:
    source = {**SOURCE, "features": FEATURES.tolist()}
    answer = compute(client, source, intervals="all")
    for key, found in values(answer).items():
        if key == "dunn":
            found = answer["intervals"][key]
            assert (found["low"], found["high"]) == (None, None)
            assert "describes this sample" in found["reason"]
            continue
        limits = answer["intervals"][key]
        assert limits["low"] <= found <= limits["high"], key
        of_table = "silhouette" not in key and key not in ("davies_bouldin", "calinski_harabasz")
        assert limits["method"] in (("influence", "influence_logit") if of_table else ("bootstrap", "bootstrap_basic"))
        assert limits["given"] == "n"
    assert answer["intervals"]["adjusted_rand"]["high"] - answer["intervals"]["adjusted_rand"]["low"] < 0.2
    assert compute(client, SOURCE)["intervals"].keys() >= {"adjusted_rand", "v_measure", "purity"}
    assert compute(client, SOURCE, intervals="none")["intervals"] == {}


def test_expressions(client: httpx.Client) -> None:
    asked = ["gps(homogeneity, completeness)", "v_measure(beta=2)", "normalized_mutual_information(average=max)", "nmi"]
    answer = compute(client, SOURCE, metrics=asked)
    assert answer["requested"]["gps(homogeneity, completeness)"] == pytest.approx(sk.v_measure_score(TRUTH, THREE))
    assert answer["requested"]["v_measure(beta=2)"] == pytest.approx(sk.v_measure_score(TRUTH, THREE, beta=2))
    assert answer["requested"]["normalized_mutual_information(average=max)"] == pytest.approx(
        sk.normalized_mutual_info_score(TRUTH, THREE, average_method="max")
    )
    for metric, message in (("h_mean", "no meaning for clustering"), ("silhouette", "needs features")):
        fault = refused(client, SOURCE, options={"metrics": [metric]})
        assert fault["pointer"] == "/options/metrics/0"
        assert message in fault["detail"]


def test_distances_stand_in_place_of_features(client: httpx.Client) -> None:
    """Of those that features have the answers are the same, also of what is kept and drawn again from."""
    far = cdist(FEATURES, FEATURES)
    asked = {"metrics": ["silhouette(distance=manhattan)"], "intervals": "all", "draws": 200, "seed": 1}
    found = compute(client, {**SOURCE, "distances": far.tolist()}, **asked)
    same = compute(client, {**SOURCE, "features": FEATURES.tolist()}, **asked)
    for key in ("silhouette", "dunn", "adjusted_rand"):
        assert values(found)[key] == pytest.approx(values(same)[key], rel=1e-12)
    limits, others = found["intervals"]["silhouette"], same["intervals"]["silhouette"]
    # Samples are drawn by what was sent of them.
    for end in ("low", "high"):
        assert limits[end] == pytest.approx(others[end], abs=5 * others["monte_carlo_error"])
    order = np.random.default_rng(0).permutation(len(far))
    moved = {name: np.array(SOURCE[name])[order].tolist() for name in ("y_true", "y_pred")}
    again = compute(client, {**SOURCE, **moved, "distances": far[np.ix_(order, order)].tolist()}, **asked)
    assert again["intervals"]["silhouette"] == pytest.approx(limits)
    reasons = {one["metric"]: one["code"] for one in found["undefined"]}
    lacking = ("davies_bouldin", "calinski_harabasz", "silhouette(distance=manhattan)")
    assert reasons == dict.fromkeys(lacking, "no_features")


@pytest.mark.slow
def test_any_distances_are_kept_and_compared(client: httpx.Client) -> None:
    """Numbers of no geometry, which follow their samples into another order."""
    odd = np.random.default_rng(5).random((178, 178))
    odd = np.triu(odd, 1) + np.triu(odd, 1).T
    kept = keep(client, "distances", y_pred=SIX, distances=odd.tolist(), sample_ids=IDS)
    assert values(kept)["silhouette"] == pytest.approx(sk.silhouette_score(odd, SIX, metric="precomputed"), rel=1e-12)
    apart = np.asarray(SIX)[:, None] != SIX
    assert values(kept)["dunn"] == pytest.approx(odd[apart].min() / odd[~apart].max(), rel=1e-12)
    assert client.get(f"/v1/evaluations/{kept['id']}").json() == kept
    assert kept["input"]["n_features"] == 0
    turned = np.random.default_rng(6).permutation(178)
    other = keep(
        client,
        "turned",
        y_pred=[SIX[place] for place in turned],
        distances=odd[np.ix_(turned, turned)].tolist(),
        sample_ids=[IDS[place] for place in turned],
    )
    found = compare(client, kept["id"], other["id"], metrics=["silhouette"])["metrics"]["silhouette"]
    assert found["differences"][0]["identical"] is True
    merged = client.post("/v1/evaluations/merge", json={"evaluations": [kept["id"], other["id"]]})
    check_problem(merged, 422, "not_for_this_kind")


def test_without_truth_there_is_the_shape_alone(client: httpx.Client) -> None:
    answer = compute(client, {"kind": "clustering", "y_pred": SIX, "features": FEATURES.tolist()})
    assert values(answer).keys() == {"silhouette", "davies_bouldin", "calinski_harabasz", "dunn"}
    assert answer["input"]["labels"] == []
    assert "contingency" not in answer["input"]
    assert sum(answer["input"]["cluster_sizes"]) == 178


def test_what_has_no_value_is_null_with_a_reason(client: httpx.Client) -> None:
    answer = compute(client, {"kind": "clustering", "contingency": [[7]]})
    assert values(answer)["adjusted_rand"] is None
    assert values(answer)["homogeneity"] == 1
    codes = {one["metric"]: one["code"] for one in answer["undefined"] if "group" not in one}
    assert codes == {
        "adjusted_rand": "trivial_grouping",
        "normalized_mutual_information": "trivial_grouping",
        "adjusted_mutual_information": "trivial_grouping",
    }


def test_findings(client: httpx.Client) -> None:
    def said(table: Any, names: list[str]) -> dict[str, str]:
        answer = compute(client, {"kind": "clustering", "contingency": table, "clusters": names})
        return {one["code"]: one["message"] for one in answer["findings"]}

    def codes(table: Any, names: list[str]) -> set[str]:
        return {*said(table, names)}

    assert codes([[9, 1], [3, 2]], ["a", "-1"]) == {"noise_counted_as_cluster"}
    assert said([[9, 1], [3, 0]], ["a", "-1"])["noise_counted_as_cluster"].startswith("1 sample is in a cluster")
    assert codes([[9, 3], [3, 2]], ["a", "b"]) == {"classes_without_cluster"}
    # A class without samples is none that is not found.
    assert codes([[30, 2], [0, 0], [3, 25]], ["a", "b"]) == set()
    assert said([[20, 20]] + [[2, 2]] * 4, ["a", "b"])["classes_without_cluster"] == (
        "No cluster has more samples of 4 classes than of any other class: these classes are not found. They are "
        "1, 2, 3 and 4."
    )
    assert codes([[9], [3]], ["a"]) == {"one_cluster"}
    assert codes([[5, 5, 5, 0, 0, 0], [0, 0, 0, 5, 5, 5]], [*"abcdef"]) == {
        "purity_overstates", "information_limits_narrow",
    }  # fmt: skip
    assert codes([[9, 0], [0, 9]], ["a", "b"]) == set()


# Files


def _frame(**columns: Any) -> dict[str, Any]:
    return {f"feature.{place}": FEATURES[:, place] for place in range(13)} | columns


def _written(fmt: str, columns: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    if fmt == "npz":
        arrays: dict[str, Any] = {name: np.asarray(column) for name, column in columns.items()}
        np.savez(buffer, **arrays)
        return buffer.getvalue()
    table = pa.table(columns)
    if fmt == "parquet":
        pa.parquet.write_table(table, buffer)
    elif fmt == "arrow":
        pa.feather.write_feather(table, buffer)
    else:
        pa.csv.write_csv(table, buffer)
    return buffer.getvalue()


def _upload(client: httpx.Client, data: bytes, source: Json) -> httpx.Response:
    import orjson

    parts = {
        "evaluation": (None, orjson.dumps({"input": source})),
        "data": ("wine", data),
    }
    return client.post("/v1/evaluations?store=false", files=parts)


@pytest.mark.parametrize("fmt", ["parquet", "arrow", "csv", "npz"])
def test_files(client: httpx.Client, fmt: str) -> None:
    expected = compute(client, {**SOURCE, "features": FEATURES.tolist(), "sample_ids": IDS})
    answer = _upload(client, _written(fmt, _frame(y_true=TRUTH, y_pred=THREE, sample_id=IDS)), {"kind": "clustering"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["metrics"] == expected["metrics"]
    alone = _upload(client, _written(fmt, _frame(y_pred=SIX)), {"kind": "clustering"})
    assert alone.status_code == 200, alone.text
    assert values(alone.json()).keys() == {"silhouette", "davies_bouldin", "calinski_harabasz", "dunn"}


def test_an_array_of_features(client: httpx.Client) -> None:
    answer = _upload(client, _written("npz", {"y_pred": SIX, "features": FEATURES}), {"kind": "clustering"})
    assert answer.json()["input"]["n_features"] == 13


def test_columns_that_mean_nothing(client: httpx.Client) -> None:
    answer = _upload(client, _written("csv", _frame(y_pred=SIX, score=[1.0] * 178)), {"kind": "clustering"})
    problem = check_problem(answer, 422, "invalid_input")
    assert problem["errors"][0]["pointer"] == "/data"
    assert "'score'" in problem["detail"]


# What is kept, and compared


def keep(client: httpx.Client, name: str, **source: Any) -> Json:
    body = evaluation(input={"kind": "clustering", **source})
    return create(client, body | {"model": {"name": name, "version": "1"}, "dataset": {"name": "wine-clusters"}})


def test_kept_and_read_again(client: httpx.Client) -> None:
    for source in (
        {"y_true": TRUTH, "y_pred": THREE, "features": FEATURES.tolist(), "sample_ids": IDS},
        {"contingency": TABLE.tolist()},
        {"y_pred": SIX, "features": FEATURES.tolist()},
    ):
        made = keep(client, "kept", **source)
        again = client.get(f"/v1/evaluations/{made['id']}").json()
        assert again["metrics"] == made["metrics"]
        assert again["input"] == made["input"]
        assert again["intervals"] == made["intervals"]


def test_a_list_by_the_adjusted_rand_index(client: httpx.Client) -> None:
    made = [keep(client, f"sorted-{count}", y_true=TRUTH, y_pred=clusters(count)) for count in (2, 3, 8)]
    found = client.get("/v1/evaluations?dataset=wine-clusters&sort=-adjusted_rand&limit=100").json()["items"]
    order = [one["id"] for one in found if one["id"] in {m["id"] for m in made}]
    assert order == [one["id"] for one in sorted(made, key=lambda m: -values(m)["adjusted_rand"])]
    # In nats, and not what the same name means for classes: no place in a list beside it.
    assert all("mutual_information" not in one["metrics"] for one in found)


def test_leaderboard(client: httpx.Client) -> None:
    for count in (2, 3, 6):
        keep(client, f"k{count}", y_true=TRUTH, y_pred=clusters(count), sample_ids=IDS)
    for metric in ("adjusted_rand", "v_measure(beta=2)", "mutual_information"):
        answer = client.get(f"/v1/leaderboard?dataset=wine-clusters&metric={metric}")
        assert answer.status_code == 200, answer.text
        ranked = [one for one in answer.json()["items"] if one["model"]["name"] in ("k2", "k3", "k6")]
        assert [one["value"] for one in ranked] == sorted((one["value"] for one in ranked), reverse=True)


def test_paired_comparison(client: httpx.Client) -> None:
    ids = [keep(client, f"p{k}", y_true=TRUTH, y_pred=clusters(k), sample_ids=IDS)["id"] for k in (3, 8)]
    answer = compare(client, *ids, metrics=["adjusted_rand", "v_measure"])
    assert answer["design"]["paired"] is True
    found = answer["metrics"]["adjusted_rand"]["differences"][0]
    assert found["low"] <= found["difference"] <= found["high"]
    assert found["difference"] == pytest.approx(
        sk.adjusted_rand_score(TRUTH, clusters(3)) - sk.adjusted_rand_score(TRUTH, clusters(8)), rel=1e-9
    )
    assert found["method"] == "influence, influence"
    tables = [
        keep(client, f"t{k}", contingency=sk.cluster.contingency_matrix(TRUTH, clusters(k)).tolist()) for k in (3, 8)
    ]
    apart = compare(client, *(one["id"] for one in tables), metrics=["adjusted_rand"])
    assert apart["design"]["paired"] is False


def test_gate(client: httpx.Client) -> None:
    made = keep(client, "gated", y_true=TRUTH, y_pred=THREE)
    rules = [
        {"metric": "adjusted_rand", "min": 0.75},
        # Its limits are those of a scale that ends at 1: they reach further down than up.
        {"metric": "adjusted_rand", "min": 0.8},
        {"metric": "min(homogeneity, completeness)", "min": 0.99},
    ]
    assert client.put("/v1/gates/wine", json={"rules": rules}).status_code in (200, 201)
    answer = client.post("/v1/gates/wine/checks", json={"evaluation": made["id"]}).json()
    assert [one["verdict"] for one in answer["results"]] == ["pass", "inconclusive", "fail"]
    found = answer["results"][1]
    assert found["value"] - found["low"] > found["high"] - found["value"]
    assert 0.75 < found["low"] < 0.8


# What is refused

REFUSED: list[tuple[Json, str, str]] = [
    ({"contingency": []}, "/input/contingency", "no_samples"),
    ({"contingency": [[1, 2], [3]]}, "/input/contingency/1", "ragged_row"),
    ({"contingency": [[1, 2.5]]}, "/input/contingency/0/1", "not_a_count"),
    ({"contingency": [[1, -2]]}, "/input/contingency/0/1", "negative_entry"),
    ({"contingency": [[0, 0]]}, "/input/contingency", "no_samples"),
    ({"contingency": [[1, 2]], "classes": ["a", "b"]}, "/input/classes", "wrong_label_count"),
    ({"contingency": [[1, 2]], "clusters": ["a", "a"]}, "/input/clusters/1", "duplicate_label"),
    ({"contingency": [[1, 2]], "y_pred": [1]}, "/input/y_pred", "one_of"),
    ({"y_true": [1], "y_pred": [1], "classes": ["1"]}, "/input/classes", "one_of"),
    ({"y_true": [1, 2]}, "/input/y_pred", "missing_field"),
    ({}, "/input/y_pred", "missing_field"),
    ({"y_pred": [1, 2]}, "/input/y_true", "missing_field"),
    ({"y_pred": []}, "/input/y_pred", "no_samples"),
    ({"y_true": [1], "y_pred": [1, 2]}, "/input/y_true", "wrong_length"),
    ({"y_pred": [1, 2], "features": [[1.0]]}, "/input/features", "wrong_length"),
    ({"y_pred": [1, 2], "features": [[1.0], [1.0, 2.0]]}, "/input/features/1", "ragged_row"),
    ({"y_pred": [1, 2], "features": [[1.0], ["x"]]}, "/input/features/1/0", "not_a_number"),
    ({"y_pred": [1, 2], "features": [1.0, 2.0]}, "/input/features/0", "not_a_row"),
    ({"y_pred": [1, 2], "features": [[1.0], [1e200]]}, "/input/features/1/0", "out_of_range"),
    ({"y_pred": [1, 2], "distances": [[0, 1]] * 2, "features": [[1.0]] * 2}, "/input/distances", "one_of"),
    ({"y_pred": [1, 2], "distances": [[0], [1]]}, "/input/distances/0", "ragged_row"),
    ({"y_pred": [1, 2], "distances": [[0, 1], [2, 0]]}, "/input/distances/0/1", "not_a_distance"),
    ({"y_pred": [1, 2], "distances": [[0, 1], [1, 3]]}, "/input/distances/1/1", "not_a_distance"),
    ({"y_pred": [1, 2], "distances": [[0, -1], [-1, 0]]}, "/input/distances/0/1", "out_of_range"),
    ({"y_true": [1, "a"], "y_pred": [1, 2]}, "/input/y_true/0", "mixed_labels"),
    ({"y_true": [1, 2], "y_pred": [1, 2], "sample_ids": ["a", "a"]}, "/input/sample_ids/1", "duplicate_sample_id"),
    ({"y_true": ["a", "", "b"], "y_pred": [1, 2, 3], "sample_weight": [0, 1, 1]}, "/input/y_true/1", "bad_label"),
]


@each(("source", "pointer", "code"), REFUSED)
def test_bad_input_says_where(client: httpx.Client, source: Json, pointer: str, code: str) -> None:
    fault = refused(client, {"kind": "clustering", **source})
    assert (fault["pointer"], fault["code"]) == (pointer, code)


def _by_pairs(y: list[int], z: list[int], w: list[float]) -> dict[str, float]:
    """Measures of pairs of different samples, each of which weighs as much as both of its samples multiplied."""
    pairs = [(y[i] == y[j], z[i] == z[j], w[i] * w[j]) for i, j in permutations(range(len(w)), 2)]
    both, of_class, of_cluster, alike, every = (
        sum(mass for one, other, mass in pairs if counts(one, other))
        for counts in (and_, lambda one, _: one, lambda _, other: other, eq, lambda *_: True)
    )
    chance = of_class * of_cluster / every
    return {
        "rand_index": alike / every,
        "adjusted_rand": (both - chance) / ((of_class + of_cluster) / 2 - chance),
        "pair_fowlkes_mallows": both / (of_class * of_cluster) ** 0.5,
        "pair_precision": both / of_cluster,
        "pair_recall": both / of_class,
    }


def test_weights_count_as_so_many_samples_as_they_are_worth(client: httpx.Client) -> None:
    random = np.random.default_rng(3)
    y = random.integers(0, 3, 60)
    z = np.where(random.random(60) < 0.6, y, random.integers(0, 4, 60))
    w = np.append(random.exponential(size=59), 0.0)
    source: Json = {"kind": "clustering", "y_true": y.tolist(), "y_pred": z.tolist()}
    options = {"metrics": ["pair_precision", "pair_recall", "variation_of_information"], "intervals": "all"}

    def found(weights: list[float] | None) -> dict[str, float]:
        body = {"input": {**source, **({} if weights is None else {"sample_weight": weights})}, "options": options}
        answer = client.post("/v1/metrics/compute", json=body).json()
        assert all(one["low"] is not None for name, one in answer["intervals"].items() if name == "adjusted_rand")
        return {**answer["metrics"]["prevalence_sensitive"], **answer["requested"]}

    weighted = found(w.tolist())
    for name, value in _by_pairs(y.tolist(), z.tolist(), w.tolist()).items():
        assert weighted[name] == pytest.approx(value, rel=1e-12), name
    table = np.zeros((3, 4))
    np.add.at(table, (y, z), w)
    shared = entropy(table.sum(axis=1)) + entropy(table.sum(axis=0)) - entropy(table.ravel())
    assert weighted["mutual_information"] == pytest.approx(shared, rel=1e-12)
    assert weighted["adjusted_mutual_information"] is None
    for name, value in found(None).items():
        if name != "adjusted_mutual_information":
            assert found([2.5] * 60)[name] == pytest.approx(value, rel=1e-12), name


def test_samples_without_weight_count_for_nothing(client: httpx.Client) -> None:
    source: Json = {"kind": "clustering", "y_true": ["u", "u", "v", "v"], "y_pred": [*"aabb"], "sample_ids": [*"wxyz"]}
    without = {name: values[:-1] if isinstance(values, list) else values for name, values in source.items()}
    found = compute(client, {**source, "sample_weight": [1.0, 2.0, 3.0, 0.0]})
    assert found["metrics"] == compute(client, {**without, "sample_weight": [1.0, 2.0, 3.0]})["metrics"]


def test_weights_of_what_stands_alone_and_of_points(client: httpx.Client) -> None:
    alone: Json = {"kind": "clustering", "y_true": [*range(5)], "y_pred": [*range(5)]}
    weighted = {**alone, "sample_weight": [0.1, 0.7, 0.3, 0.33, 0.123]}
    answer = client.post("/v1/metrics/compute", json={"input": weighted}).json()
    assert {one["metric"]: one["code"] for one in answer["undefined"]}["adjusted_rand"] == "trivial_grouping"
    for name, table in (("features", [[1.0]] * 5), ("distances", [[0.0] * 5] * 5)):
        fault = refused(client, {**weighted, name: table})
        assert (fault["pointer"], fault["code"]) == ("/input/sample_weight", "one_of")
        assert fault["detail"].endswith(f"got {name} too")


def test_weighted_clusterings_are_compared(client: httpx.Client) -> None:
    random = np.random.default_rng(5)
    y, w = random.integers(0, 3, 200), random.exponential(size=200).tolist()
    runs = []
    for right in (0.9, 0.5):
        z = np.where(random.random(200) < right, y, random.integers(0, 3, 200))
        source = {"kind": "clustering", "y_true": y.tolist(), "y_pred": z.tolist(), "sample_weight": w}
        runs.append(create(client, evaluation(input={**source, "sample_ids": [*range(200)]}))["id"])
    compared = compare(client, *runs, metrics=["adjusted_rand", "purity"])
    assert compared["design"]["paired"]
    assert all(one["differences"][0]["low"] > 0 for one in compared["metrics"].values())


def test_clusters_of_points_alone_are_compared_by_the_silhouette(client: httpx.Client) -> None:
    points = FEATURES[:60].tolist()
    runs = [
        create(client, evaluation(dataset="points", input={"kind": "clustering", "y_pred": found, "features": points}))
        for found in (THREE[:60], SIX[:60])
    ]
    assert [*compare(client, *(run["id"] for run in runs))["metrics"]] == ["silhouette"]


def test_weights_of_the_samples_in_common_are_what_these_are_worth(client: httpx.Client) -> None:
    random = np.random.default_rng(5)
    w, y = random.exponential(1.0, 200), random.integers(0, 3, 200)
    runs, shared = [], slice(50, 200)
    for right, part in ((0.9, slice(None)), (0.6, shared)):
        z = np.where(random.random(200) < right, y, random.integers(0, 3, 200))

        def source(part: slice, z: Any = z) -> Json:
            columns = {"y_true": y, "y_pred": z, "sample_weight": w, "sample_ids": np.arange(200)}
            return {"kind": "clustering", **{name: column[part].tolist() for name, column in columns.items()}}

        runs.append((create(client, evaluation(dataset="in common", input=source(part)))["id"], source(shared)))
    compared = compare(client, *(run for run, _ in runs), metrics=["adjusted_rand"], minimum_matched=0.7)
    expected = [values(compute(client, alone))["adjusted_rand"] for _, alone in runs]
    found = compared["metrics"]["adjusted_rand"]["values"]
    assert found == pytest.approx(expected, rel=1e-9)


MANY = np.arange(1600) % 1100
MOVED = np.where(np.arange(1600) % 4 == 0, np.random.default_rng(4).integers(0, 1400, 1600), MANY)


def test_more_clusters_than_classes_may_be(client: httpx.Client) -> None:
    """They are kept, read, listed, compared and written down as few are; the table, nearly all empty, is not shown."""
    many = keep(client, "many", y_true=[f"c{code}" for code in MANY], y_pred=[f"k{code}" for code in MOVED])
    whole = client.get(f"/v1/evaluations/{many['id']}").json()
    assert whole["metrics"] == many["metrics"]
    assert values(whole)["adjusted_rand"] == pytest.approx(sk.adjusted_rand_score(MANY, MOVED), rel=1e-12)
    assert len(whole["input"]["clusters"]) == np.unique(MOVED).size
    assert sum(whole["input"]["cluster_sizes"]) == 1600
    assert "contingency" not in whole["input"]
    problem = check_problem(client.get(f"/v1/evaluations/{many['id']}/plots/contingency.json"), 422, "no_figure")
    assert f"got {np.unique(MANY).size} by {np.unique(MOVED).size}" in problem["detail"]
    counted = [f"{np.unique(MANY).size:,} classes", f"{np.unique(MOVED).size:,} clusters"]
    for form in ("text/html", "text/plain"):
        text = client.get(f"/v1/evaluations/{many['id']}", headers={"Accept": form}).text
        assert [one for one in counted if one not in text] == []
    columns = {"y_true": MANY, "y_pred": MOVED}
    named_otherwise = _upload(client, _written("parquet", columns), {"kind": "clustering"}).json()
    assert values(named_otherwise) == pytest.approx(values(whole), rel=1e-12)


def test_what_has_no_meaning_for_clusterings(client: httpx.Client) -> None:
    made = keep(client, "meaningless", y_true=TRUTH, y_pred=THREE)
    check_problem(client.get(f"/v1/evaluations/{made['id']}/confusion-matrix"), 422, "not_for_this_kind")


@pytest.mark.parametrize("times", [1, 10])
def test_limits_of_shared_information_say_where_they_are_too_narrow(client: httpx.Client, times: int) -> None:
    table = np.array([[8, 1, 1], [1, 9, 2], [0, 1, 7]]) * times
    answer = compute(client, {"kind": "clustering", "contingency": table.tolist()})
    assert ("information_limits_narrow" in {one["code"] for one in answer["findings"]}) is (times == 1)
