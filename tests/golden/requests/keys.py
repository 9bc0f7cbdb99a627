"""Keys and the audit log, on a service that needs none."""

from tests.golden.calls import delete, get, keep, post
from tests.golden.data import of_matrix

_NOWHERE = "01900000-0000-7000-8000-000000000001"

KEYS = [
    post("key", "/v1/keys", {"name": "ci", "scopes": ["write"]}),
    post(
        "limited",
        "/v1/keys",
        {
            "name": "board",
            "scopes": ["read", "read"],
            "expires_at": "2099-01-01T00:00:00Z",
            "rate": "50/second; 1000/hour",
            "daily_quota": 5,
        },
    ),
    post("of-another-project", "/v1/keys", {"name": "far", "project": "far", "scopes": ["admin"]}),
    get("list", "/v1/keys"),
    get("list-one", "/v1/keys", limit=1),
    get("read", "/v1/keys/$key"),
    get("read-of-another-project", "/v1/keys/$of-another-project"),
    get("read-unknown", f"/v1/keys/{_NOWHERE}"),
    post("rotate", "/v1/keys/$key/rotations", {}),
    post("rotate-with-overlap", "/v1/keys/$key/rotations", {"overlap_seconds": 60}),
    post("rotate-too-long", "/v1/keys/$key/rotations", {"overlap_seconds": 10**6}),
    delete("revoke", "/v1/keys/$limited"),
    delete("revoke-again", "/v1/keys/$limited"),
    get("read-revoked", "/v1/keys/$limited"),
    post("past", "/v1/keys", {"name": "x", "scopes": ["read"], "expires_at": "2020-01-01T00:00:00Z"}),
    post("no-rate", "/v1/keys", {"name": "x", "scopes": ["read"], "rate": "often"}),
    post("no-scope", "/v1/keys", {"name": "x", "scopes": []}),
    post("no-project", "/v1/keys", {"name": "x", "scopes": ["read"], "project": "A B"}),
    keep("run", of_matrix([[5, 1], [2, 4]])),
    get("audit", "/v1/audit"),
    get("audit-one", "/v1/audit", limit=1),
    get("metrics", "/metrics"),
    get("usage", "/v1/usage"),
]
