"""Requests that are answered later: on a service that works on them, and on one that leaves them to others."""

from dataclasses import replace

from tests.golden.calls import Call, delete, evaluation, get, keep, later, post
from tests.golden.data import matrix, of_matrix

_NOWHERE = "01900000-0000-7000-8000-000000000001"
_MATRIX = of_matrix(matrix(3, 120, 5))


def _ended(name: str, job: str) -> Call:
    return replace(get(name, f"/v1/jobs/${job}"), until_ended=True)


LATER = [
    later(keep("evaluation", _MATRIX)),
    _ended("evaluation-ended", "evaluation"),
    get("evaluation-read", "$evaluation-ended:/result"),
    get("evaluation-result", "/v1/jobs/$evaluation/result"),
    later(post("computation", "/v1/metrics/compute", {"input": _MATRIX}, fields="headline,findings")),
    _ended("computation-ended", "computation"),
    get("computation-result", "/v1/jobs/$computation/result"),
    later(post("batch", "/v1/evaluations/batch", {"evaluations": [evaluation(_MATRIX), {"input": 5}]}, store="false")),
    _ended("batch-ended", "batch"),
    get("batch-result", "/v1/jobs/$batch/result"),
    later(post("unknown", "/v1/comparisons", {"evaluations": [_NOWHERE, "$evaluation"]})),
    _ended("unknown-ended", "unknown"),
    get("unknown-result", "/v1/jobs/$unknown/result"),
    later(post("malformed", "/v1/comparisons", {"evaluations": 5})),
    later(keep("not-written", _MATRIX, store=5)),
    delete("cancel-ended", "/v1/jobs/$computation"),
    get("list", "/v1/jobs"),
    get("list-one", "/v1/jobs", limit=1),
    get("trail", "/v1/audit"),
]
WAITING = [
    later(keep("waits", _MATRIX)),
    get("waits-read", "/v1/jobs/$waits"),
    get("waits-result", "/v1/jobs/$waits/result"),
    delete("cancel", "/v1/jobs/$waits"),
    delete("cancel-again", "/v1/jobs/$waits"),
    get("cancelled", "/v1/jobs/$waits"),
    get("list", "/v1/jobs"),
    get("read-unknown", f"/v1/jobs/{_NOWHERE}"),
    delete("cancel-unknown", f"/v1/jobs/{_NOWHERE}"),
    get("trail", "/v1/audit"),
]
