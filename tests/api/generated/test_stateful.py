"""What is made is used: sequences of requests along the links of the document."""

from typing import Any

import httpx
import hypothesis
import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.api.answers import evaluation
from tests.api.generated.document import SCHEMA
from tests.api.generated.kept import DATASETS, MODELS, PROBABILITIES, Kept
from tests.api.generated.profile import generated
from tests.api.generated.valid import Case, is_positive, left_out, make_valid, operation_id
from tests.openapi import DOCUMENT

pytestmark = pytest.mark.slow

OPERATIONS = {
    one["operationId"]: (path, one) for path, methods in DOCUMENT["paths"].items() for one in methods.values()
}


def test_every_link_can_be_followed(client: httpx.Client, kept: Kept) -> None:
    """With the values that it names in the answer or in the address of the request."""
    other = client.post("/v1/evaluations", json=evaluation(input=PROBABILITIES)).raise_for_status().json()["id"]
    bodies = {
        "createEvaluation": evaluation(input=PROBABILITIES),
        "createComparison": {"evaluations": kept.runs[:2]},
        "mergeEvaluations": {
            "evaluations": [kept.by_probabilities, other],
            "model": {"name": "m"},
            "dataset": {"name": "d"},
        },
        "compareAcrossDatasets": {"metric": "h_mean", "models": MODELS, "datasets": DATASETS},
        "putGate": {"rules": [{"metric": "h_mean", "min": 0.5}]},
        "createCheck": {"evaluation": kept.runs[0], "baseline": kept.runs[1]},
        "createKey": {"name": "linked", "scopes": ["read"]},
        "rotateKey": {},
        "putWebhook": {"url": "https://hooks.example:9/", "events": ["job.finished"]},
    }
    followed = set()
    for name, (path, operation) in OPERATIONS.items():
        links = operation["responses"].get("201", {}).get("links", {})
        if not links:
            continue
        puts = name in ("putGate", "putWebhook")
        place = {"name": "linked" if puts else kept.gate, "identifier": kept.key}
        method = "PUT" if puts else "POST"
        reply = client.request(method, path.format(**place), json=bodies[name])
        assert reply.status_code == 201, reply.text
        assert client.get(reply.headers["location"]).status_code == 200
        for link in links.values():
            known = {f"$response.body#/{member}": reply.json().get(member) for member in ("id", "name")}
            known["$request.path.name"] = place["name"]
            values = {parameter: known[value] for parameter, value in link["parameters"].items()}
            target, linked = OPERATIONS[link["operationId"]]
            needed = {one["name"] for one in linked["parameters"] if one["in"] == "path"}
            assert set(values) == needed - {"curve"}
            if link["operationId"].startswith(("get", "list")):
                assert client.get(target.format(**values, curve="roc")).status_code == 200
            followed.add(link["operationId"])
    assert len(followed) == 20


def test_what_is_made_can_be_used_until_it_is_deleted(base_url: str, kept: Kept) -> None:
    followed: set[str] = set()

    # A key is rotated once: what a second time is answered depends on the first, and sequences are played again.
    # What may be asked of a merge depends on its parts: its links are followed above.
    repeatable = SCHEMA.exclude(operation_id=["rotateKey", "mergeEvaluations"])

    class Machine(repeatable.as_state_machine()):  # type: ignore[misc]  # a class made by a function
        def get_call_kwargs(self, _: Case) -> dict[str, Any]:
            return {"base_url": base_url}

        def before_call(self, case: Case) -> None:
            if is_positive(case):
                make_valid(case, kept)
                if operation_id(case) == "createEvaluation" and case.media_type == "application/json":
                    # Of this everything can be asked.
                    case.body = evaluation(input=PROBABILITIES, tags=case.body.get("tags", {}))

        def after_call(self, response: Any, case: Case) -> None:
            super().after_call(response, case)
            if response.status_code < 300:
                followed.add(operation_id(case))

        def validate_response(self, response: Any, case: Case, **sent: Any) -> None:
            case.validate_response(
                response, excluded_checks=left_out(case), transport_kwargs=sent, recorder=self.recorder
            )

    run_state_machine_as_test(Machine, settings=hypothesis.settings(generated(), stateful_step_count=8))
    assert len(followed) >= 8, followed
