"""What is asked for: names, tags, labels, options and expressions, comparisons, gates and the rest, of wrong sizes and types."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.hostile.harness import COMPUTE, Case, http

COUNTS = {"kind": "binary_counts", "tp": 8, "fn": 2, "fp": 1, "tn": 9}
MATRIX = {"kind": "confusion_matrix", "matrix": [[5, 1], [2, 7]]}
FIRST, SECOND = (f"01900000-0000-7000-8000-00000000000{k}" for k in (1, 2))
WRONG_TYPES: Mapping[str, Any] = {"null": None, "a number": 1, "true": True, "an array": ["a"], "an object": {"a": "b"}}
Table = tuple[tuple[str, Any, int, str], ...]
UNSEEN = {
    "NUL": "a\0b",
    "a zero-width space": "a\u200bb",
    "a text that turns": "a\u202eb",
    "a mark of order": "\ufeffa",
    "an end of line": "a\nb",
    "a bell": "a\x07b",
    "a soft hyphen": "a\u00adb",
    "an end of paragraph": "a\u2029b",
}


def sent(name: str, path: str, value: Any, status: int, code: str | None, method: str = "POST") -> Case:
    return Case(name, http(method, path, json.dumps(value).encode()), status, code)


def computed(name: str, value: Any, status: int, code: str | None) -> Case:
    return sent(name, COMPUTE, value, status, code)


def names() -> Iterator[Case]:
    for name, text in UNSEEN.items():
        code = "nul_character" if name == "NUL" else "unseen_character"
        for place, members in (
            ("a model", {"model": {"name": text}}),
            ("a version", {"model": {"name": "m", "version": text}}),
            ("a split", {"dataset": {"name": "d", "split": text}}),
            ("a tag", {"tags": {"k": text}}),
            ("a tag's name", {"tags": {text: "v"}}),
            ("a label", {"input": {**MATRIX, "labels": [text, "b"]}}),
        ):
            # What a tag's name may be is a pattern too.
            said = "wrong_value" if (name, place) == ("NUL", "a tag's name") else code
            yield computed(f"name: {name} in {place}", {"input": COUNTS, **members}, 422, said)
    for name, text, code in (
        ("nothing", "", "wrong_length"),
        ("spaces", "   ", "blank"),
        ("a no-break space", "\u00a0", "blank"),
        ("257 characters", "a" * 257, "wrong_length"),
    ):
        yield computed(f"name: {name}", {"input": COUNTS, "model": {"name": text}}, 422, code)
    # As an escape it is plain text, of what no letter is.
    yield computed("name: half of a pair", {"input": COUNTS, "model": {"name": "\ud800"}}, 400, "invalid_json")
    for kind, value in WRONG_TYPES.items():
        yield computed(f"name: {kind}", {"input": COUNTS, "model": {"name": value}}, 422, "wrong_type")
        if kind != "null":
            yield computed(
                f"a model that is {kind}",
                {"input": COUNTS, "model": value},
                422,
                "missing_field" if kind == "an object" else "wrong_type",
            )
        if kind != "an object":
            yield computed(f"tags that are {kind}", {"input": COUNTS, "tags": value}, 422, "wrong_type")
        if kind not in ("a number",):
            yield computed(
                f"a label that is {kind}",
                {"input": {**MATRIX, "labels": [value, "b"]}},
                422 if kind != "true" else 200,
                "label_type" if kind != "true" else None,
            )
    yield computed(
        "tags: one in two spellings", {"input": COUNTS, "tags": {"\u00e9": "1", "e\u0301": "2"}}, 422, "repeated_name"
    )
    yield computed("tags: 65", {"input": COUNTS, "tags": {f"k{k}": "v" for k in range(65)}}, 422, "wrong_length")
    yield computed(
        "labels: one in two spellings", {"input": {**MATRIX, "labels": ["\u00e9", "e\u0301"]}}, 422, "duplicate_label"
    )
    yield computed("labels: a number and its text", {"input": {**MATRIX, "labels": [1, "1"]}}, 422, "duplicate_label")
    yield computed("labels: a fraction", {"input": {**MATRIX, "labels": [0.5, 1]}}, 422, "label_type")
    yield computed("labels: three for two", {"input": {**MATRIX, "labels": ["a", "b", "c"]}}, 422, "wrong_label_count")
    yield computed("labels: an object", {"input": {**MATRIX, "labels": {"a": 0}}}, 422, "wrong_type")


OPTIONS: tuple[tuple[str, Any, str], ...] = (
    ("a level of 1", {"level": 1}, "out_of_range"),
    ("a level of 0", {"level": 0}, "out_of_range"),
    ("a level of text", {"level": "0.95"}, "wrong_type"),
    ("a seed below 0", {"seed": -1}, "out_of_range"),
    ("a seed of 2^63", {"seed": 2**63}, "out_of_range"),
    ("a seed of 400 digits", {"seed": 10**400}, "out_of_range"),
    ("a seed that is a fraction", {"seed": 0.5}, "wrong_type"),
    ("a seed that is true", {"seed": True}, "wrong_type"),
    ("other intervals", {"intervals": "some"}, "wrong_value"),
    ("draws without an end", {"draws": 10**9}, "out_of_range"),
    ("no draws", {"draws": 0}, "out_of_range"),
    ("metrics that are a text", {"metrics": "h_mean"}, "wrong_type"),
    ("a metric that is a number", {"metrics": [1]}, "wrong_type"),
    ("201 metrics", {"metrics": ["h_mean"] * 201}, "wrong_length"),
    ("an option that nobody knows", {"levl": 0.9}, "unknown_field"),
    ("pseudo counts below 0", {"prior": "custom", "pseudo_counts": [[-1, 0], [0, 0]]}, "out_of_range"),
    ("pseudo counts that are text", {"prior": "custom", "pseudo_counts": ["ab", "cd"]}, "wrong_type"),
    ("retained things that nobody knows", {"retain": "some"}, "wrong_value"),
)
EXPRESSIONS: tuple[tuple[str, str, str], ...] = (
    ("nothing", "", "wrong_length"),
    ("spaces", "  ", "invalid_expression"),
    ("brackets that open", "(" * 1_999, "invalid_expression"),
    ("brackets in pairs", "(" * 900 + "h_mean" + ")" * 900, "invalid_expression"),
    ("means in means", "mean(" * 330 + "mcc" + ")" * 330, "invalid_expression"),
    ("a mean of 480", "mean(" + ",".join(["mcc"] * 480) + ")", ""),
    ("2,001 characters", "a" * 2_001, "wrong_length"),
    ("a name that nobody knows", "h_men", "unknown_metric"),
    ("a name of 2,000 letters", "a" * 2_000, "unknown_metric"),
    ("a parameter that nobody knows", "f_beta(gamma=2)", "invalid_parameter"),
    ("a parameter twice", "f_beta(beta=1, beta=2)", "invalid_parameter"),
    ("a parameter below 0", "f_beta(beta=-1)", "invalid_parameter"),
    ("a parameter of 10^400", "f_beta(beta=1e400)", "invalid_parameter"),
    ("a parameter of 1,900 digits", "f_beta(beta=" + "9" * 1_900 + ")", "invalid_parameter"),
    ("a parameter that is NaN", "f_beta(beta=nan)", "invalid_parameter"),
    ("a class that is none", "recall@nobody", "unknown_label"),
    ("two classes", "recall@0@1", "invalid_expression"),
    ("code", "__import__('os').system('true')", "invalid_expression"),
    ("NUL", "h_mean\0", "nul_character"),
    ("a letter that is not seen", "h_mean\u200b", "unseen_character"),
    ("no commas", "mean(mcc mcc)", "invalid_expression"),
    ("an empty mean", "mean()", "invalid_expression"),
)


def comparisons() -> Iterator[Case]:
    ids = [f"01900000-0000-7000-8000-{k:012}" for k in range(5_000)]
    for name, body, status, code in (
        ("5,000 ids", {"evaluations": ids}, 422, "wrong_length"),
        ("one id", {"evaluations": [FIRST]}, 422, "wrong_length"),
        ("one id twice", {"evaluations": [FIRST, FIRST]}, 422, "repeated_evaluation"),
        ("ids that nobody knows", {"evaluations": [FIRST, SECOND]}, 404, "not_found"),
        ("50 ids that nobody knows", {"evaluations": ids[:50]}, 404, "not_found"),
        ("ids that are numbers", {"evaluations": [1, 2]}, 422, "wrong_value"),
        ("ids of 10 KB", {"evaluations": ["a" * 10_000] * 2}, 422, "wrong_value"),
        ("another baseline", {"evaluations": [FIRST, SECOND], "baseline": ids[9]}, 422, "wrong_value"),
        ("no metrics", {"evaluations": [FIRST, SECOND], "metrics": []}, 422, "wrong_length"),
        ("1,000 metrics", {"evaluations": [FIRST, SECOND], "metrics": ["h_mean"] * 1_000}, 422, "wrong_length"),
        ("a rope below 0", {"evaluations": [FIRST, SECOND], "rope": -1}, 422, "out_of_range"),
        ("a pairing that is none", {"evaluations": [FIRST, SECOND], "paired": "maybe"}, 422, "wrong_value"),
        ("a pairing that is an object", {"evaluations": [FIRST, SECOND], "paired": {}}, 422, "wrong_value"),
        ("draws without an end", {"evaluations": [FIRST, SECOND], "draws": 10**12}, 422, "out_of_range"),
        ("300,000 wrong ids", {"evaluations": [0] * 300_000}, 422, "wrong_length"),
    ):
        yield sent(f"comparison: {name}", "/v1/comparisons", body, status, code)
    tournaments: Table = (
        ("one model", {"metric": "h_mean", "models": ["a"], "datasets": ["d"]}, 422, "wrong_length"),
        (
            "one model twice",
            {"metric": "h_mean", "models": ["a", {"name": "a"}], "datasets": ["d"]},
            422,
            "wrong_value",
        ),
        (
            "5,000 datasets",
            {"metric": "h_mean", "models": ["a", "b"], "datasets": [f"d{k}" for k in range(5_000)]},
            422,
            "wrong_length",
        ),
        (
            "models that nobody knows",
            {"metric": "h_mean", "models": ["a", "b"], "datasets": [f"d{k}" for k in range(5)]},
            422,
            "incomparable_runs",
        ),
        ("models that are arrays", {"metric": "h_mean", "models": [[], []], "datasets": ["d"]}, 422, "wrong_type"),
    )
    for name, body, status, code in tournaments:
        yield sent(f"tournament: {name}", "/v1/comparisons/across-datasets", body, status, code)


def gates() -> Iterator[Case]:
    rule = {"metric": "h_mean", "min": 0.8}
    for name, body, code in (
        ("no rules", {"rules": []}, "wrong_length"),
        ("5,000 rules", {"rules": [rule] * 5_000}, "wrong_length"),
        ("a rule without a demand", {"rules": [{"metric": "h_mean"}]}, "wrong_value"),
        ("a rule of two demands", {"rules": [{**rule, "max": 0.9}]}, "wrong_value"),
        ("a limit that is a text", {"rules": [{**rule, "min": "0.8"}]}, "wrong_type"),
        ("a margin without a baseline", {"rules": [{**rule, "margin": 0.1}]}, "wrong_value"),
        ("another baseline", {"rules": [{"metric": "h_mean", "better_than": FIRST}]}, "wrong_value"),
        ("rules that are objects in an object", {"rules": {"0": rule}}, "wrong_type"),
        ("a rule that is null", {"rules": [None]}, "wrong_type"),
        ("a metric that nobody knows", {"rules": [{"metric": "h_men", "min": 0.5}]}, "unknown_metric"),
        ("a description of 100 KB", {"rules": [rule], "description": "a" * 100_000}, "wrong_length"),
        ("NUL in a description", {"rules": [rule], "description": "a\0"}, "nul_character"),
        ("half of a sample", {"rules": [rule], "minimum_samples": 0.5}, "wrong_type"),
        ("10^30 samples", {"rules": [rule], "minimum_samples": 10**30}, "out_of_range"),
    ):
        yield sent(f"gate: {name}", "/v1/gates/hostile", body, 422, code, "PUT")
    yield sent("gate: NaN", "/v1/gates/hostile", {"rules": [{**rule, "min": float("nan")}]}, 422, "not_finite", "PUT")
    yield sent("check: no gate", "/v1/gates/nobody/checks", {"evaluation": FIRST}, 404, "not_found")
    yield sent(
        "check: an id that is an object", "/v1/gates/nobody/checks", {"evaluation": {"model": 1}}, 422, "wrong_type"
    )


def rest() -> Iterator[Case]:
    for name, path, body, status, code in (
        ("consistency: two million samples", "/v1/consistency-checks", {"p": 10**6, "n": 10**6, "scores": {"accuracy": "0.5"}}, 422, "wrong_value"),
        ("consistency: as many as there may be", "/v1/consistency-checks", {"p": 1_000, "n": 10**6, "scores": {"accuracy": "0.512345", "mcc": "0.1234"}}, 200, None),
        ("consistency: every division", "/v1/consistency-checks", {"total": 10**9, "scores": {"accuracy": "0.5"}}, 422, "out_of_range"),
        ("consistency: a score of 10,000 digits", "/v1/consistency-checks", {"p": 10, "n": 10, "scores": {"accuracy": "0." + "5" * 10_000}}, 422, "wrong_value"),
        ("consistency: a score that is a number", "/v1/consistency-checks", {"p": 10, "n": 10, "scores": {"accuracy": 0.5}}, 422, "wrong_type"),
        ("consistency: a hundred folds of 10,000", "/v1/consistency-checks", {"folds": [{"p": 10_000, "n": 10_000}] * 100, "scores": {"accuracy": "0.5123", "recall": "0.5"}}, 200, None),
                ("bounds: 10,001 recalls", "/v1/bounds/h-mean", {"recalls": [0.5] * 10_001}, 422, "wrong_length"),
        ("bounds: 10,000 wrong recalls", "/v1/bounds/h-mean", {"recalls": [2] * 10_000}, 422, "out_of_range"),
        ("bounds: 10^9 classes", "/v1/bounds/h-mean", {"classes": 10**9, "weak": 1, "target": 0.5}, 422, "out_of_range"),
        ("bounds: more weak ones than there are", "/v1/bounds/h-mean", {"classes": 2, "weak": 3, "target": 0.5}, 422, "wrong_value"),
        ("bounds: both forms", "/v1/bounds/h-mean", {"recalls": [1, 1], "classes": 2, "weak": 1}, 422, "wrong_value"),
        ("advice: 500,000 inputs", "/v1/metrics/recommendations", {"classes": "binary", "balanced": True, "inputs": ["matrix"] * 80_000}, 422, "wrong_length"),
        ("advice: balanced that is a text", "/v1/metrics/recommendations", {"classes": "binary", "balanced": "yes"}, 422, "wrong_type"),
        ("projection: nobody's", f"/v1/evaluations/{FIRST}/projections", {"prevalence": {"0": 0.5}}, 404, "not_found"),
        ("projection: 5,000 shares", f"/v1/evaluations/{FIRST}/projections", {"prevalence": {f"c{k}": 0 for k in range(1_500)}}, 422, "wrong_length"),
        ("projection: a sweep downwards", f"/v1/evaluations/{FIRST}/projections", {"sweep": {"class": "0", "from": 0.5, "to": 0.1}}, 422, "wrong_value"),
        ("projection: a million steps", f"/v1/evaluations/{FIRST}/projections", {"sweep": {"class": "0", "from": 0.1, "to": 0.5, "steps": 10**6}}, 422, "out_of_range"),
        ("threshold: nobody's", f"/v1/evaluations/{FIRST}/thresholds", {"objective": "h_mean"}, 404, "not_found"),
        ("threshold: 1,000 constraints", f"/v1/evaluations/{FIRST}/thresholds", {"objective": "h_mean", "constraints": [{"metric": "mcc", "min": 0}] * 1_000}, 422, "wrong_length"),
        ("shares: 120,000 wrong rows", f"/v1/evaluations/{FIRST}/prevalence-estimates", {"probabilities": [[2, 2]] * 60_000}, 422, "out_of_range"),
        ("shares: rows of two lengths", f"/v1/evaluations/{FIRST}/prevalence-estimates", {"probabilities": [[0.5, 0.5], [1]]}, 422, "wrong_value"),
        ("shares: counts below 0", f"/v1/evaluations/{FIRST}/prevalence-estimates", {"predicted": {"0": -1}}, 422, "out_of_range"),
        ("kept: no names", "/v1/evaluations", {"input": COUNTS}, 422, "missing_field"),
        ("folds of folds", COMPUTE, {"input": {"kind": "folds", "folds": [{"kind": "folds", "folds": []}]}}, 422, "wrong_value"),
        ("folds of two kinds", COMPUTE, {"input": {"kind": "folds", "folds": [COUNTS, MATRIX]}}, 422, "mixed_folds"),
        ("no folds", COMPUTE, {"input": {"kind": "folds", "folds": []}}, 422, "wrong_length"),
        ("300 classes, 100,000 draws", COMPUTE, {"input": {"kind": "confusion_matrix", "matrix": [[int(row == column) + 1 for column in range(300)] for row in range(300)]}, "options": {"intervals": "all", "draws": 100_000}}, 422, "too_many_draws"),
    ):  # fmt: skip
        yield sent(name, path, body, status, code)


CASES = [
    *names(),
    *(computed(f"option: {name}", {"input": COUNTS, "options": members}, 422, code) for name, members, code in OPTIONS),
    *(computed(f"option: options that are {kind}", {"input": COUNTS, "options": value}, 422, "wrong_type") for kind, value in WRONG_TYPES.items() if kind != "an object"),
    *(computed(f"expression: {name}", {"input": COUNTS, "options": {"metrics": [text]}}, 422 if code else 200, code or None) for name, text, code in EXPRESSIONS),
    *comparisons(),
    *gates(),
    *rest(),
]  # fmt: skip
