"""Webhooks, on a service that leaves it to others to tell them."""

from tests.golden.calls import delete, get, keep, post, put
from tests.golden.data import of_matrix

_NOWHERE = "01900000-0000-7000-8000-000000000001"
_URL = "https://hooks.example/in"
_BOTH = {"url": _URL, "events": ["evaluation.created", "gate.checked"]}
_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

WEBHOOKS = [
    put("webhook", "/v1/webhooks/both", _BOTH),
    put("webhook-again", "/v1/webhooks/both", _BOTH),
    put("given-secret", "/v1/webhooks/jobs", {"url": _URL, "events": ["job.finished"], "secret": _SECRET}),
    put("changed", "/v1/webhooks/jobs", {"url": "http://hooks.example:8080/", "events": ["gate.checked"]}),
    get("list", "/v1/webhooks"),
    get("list-one", "/v1/webhooks", limit=1),
    get("list-next", "/v1/webhooks", limit=1, cursor="$list-one:/next_cursor"),
    get("read", "/v1/webhooks/both"),
    get("read-none", "/v1/webhooks/nobody"),
    keep("told", of_matrix([[90, 10], [5, 45]])),
    put("gate", "/v1/gates/g", {"rules": [{"metric": "h_mean", "min": 0.5}]}),
    post("check", "/v1/gates/g/checks", {"evaluation": "$told"}),
    get("deliveries", "/v1/webhooks/both/deliveries"),
    get("deliveries-failed", "/v1/webhooks/both/deliveries", status="failed"),
    get("deliveries-one", "/v1/webhooks/both/deliveries", limit=1),
    get("deliveries-next", "/v1/webhooks/both/deliveries", limit=1, cursor="$deliveries-one:/next_cursor"),
    get("deliveries-of-none", "/v1/webhooks/nobody/deliveries"),
    get("deliveries-so-far", "/v1/webhooks/both/deliveries", status="lost"),
    post("retry", "/v1/webhooks/both/deliveries/$told/retries", None),
    post("retry-unknown", f"/v1/webhooks/both/deliveries/{_NOWHERE}/retries", None),
    post("test", "/v1/webhooks/both/tests", None),
    post("test-of-none", "/v1/webhooks/nobody/tests", None),
    put("no-url", "/v1/webhooks/bad", {"url": "ftp://hooks.example", "events": ["gate.checked"]}),
    put("no-host", "/v1/webhooks/bad", {"url": "https://user@hooks.example/", "events": ["gate.checked"]}),
    put("no-event", "/v1/webhooks/bad", {"url": _URL, "events": ["run.created"]}),
    put("no-secret", "/v1/webhooks/bad", {"url": _URL, "events": ["gate.checked"], "secret": "whsec_c2hvcnQ="}),
    put("no-name", "/v1/webhooks/-", _BOTH),
    delete("delete", "/v1/webhooks/both"),
    delete("delete-again", "/v1/webhooks/both"),
    get("audit", "/v1/audit", limit=8),
]
