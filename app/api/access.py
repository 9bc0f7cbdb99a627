"""The scope that each operation needs. Operations that write need no entry; those that read by POST have one."""

import hmac
from dataclasses import dataclass
from typing import Final

from app.domain.identifiers import PROJECT_NAME
from app.domain.operations import Scope

SECURITY_SCHEME: Final = {
    "key": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key, `pv_…`. It acts in its own project; one of the scope `admin` may name another in "
        f"the header `X-Prevail-Project` (`{PROJECT_NAME}`). As long as there is no key, requests from the machine "
        "of the service need none.",
    }
}
PROJECT_HEADER: Final = "X-Prevail-Project"
# Of requests that make something; how many characters it may have.
IDEMPOTENCY_KEY: Final = "Idempotency-Key"
LONGEST_KEY: Final = 255
# They compute by POST, since what they are asked does not fit into an address, and keep nothing.
READING: Final = frozenset(
    {
        "boundHMean",
        "boundHMeanOfEvaluation",
        "checkConsistency",
        "computeCurve",
        "computeIsocurves",
        "computeMetrics",
        "estimatePrevalence",
        "findThreshold",
        "findThresholdOfInput",
        "projectEvaluation",
        "projectInput",
        "recommendMetrics",
        "sliceEvaluation",
        "sliceInput",
        "tryGate",
    }
)
ADMINISTRATION: Final = frozenset(
    {
        *("createKey", "getKey", "listKeys", "rotateKey", "revokeKey", "listAuditEntries", "getServiceMetrics"),
        # They send what a project has out of the house.
        *("putWebhook", "getWebhook", "listWebhooks", "deleteWebhook"),
        *("listDeliveries", "retryDelivery", "testWebhook"),
    }
)
# They keep evaluations, with what was sent for them.
STORING: Final = frozenset({"createEvaluation", "createEvaluations", "mergeEvaluations"})


@dataclass(frozen=True, slots=True)
class MetricsDoor:
    """Access to the service's own metrics, for others than those who administer it.

    Attributes:
        open: Whoever reaches it.
        token: Whoever has it; nothing is asked of the database then.
    """

    open: bool = False
    token: str | None = None

    def lets_pass(self, authorization: str | None) -> bool:
        """Return True if a request with this `Authorization` header may read metrics."""
        if self.open:
            return True
        kind, _, given = (authorization or "").partition(" ")
        if self.token is None or kind.lower() != "bearer":
            return False
        return hmac.compare_digest(given.strip().encode(), self.token.encode())


def needed_scope(operation: str, method: str) -> Scope:
    """The scope that an operation needs: reading for GET, writing for all others unless they are named above."""
    if operation in ADMINISTRATION:
        return Scope.ADMIN
    return Scope.READ if method in ("GET", "HEAD") or operation in READING else Scope.WRITE


def keeps(operation: str, method: str) -> bool:
    """Does an operation make or put something, so that it takes an `Idempotency-Key`?"""
    return method in ("POST", "PUT") and operation not in READING


def rate_headers(requests: int, window: int, left: int, reset: int) -> dict[str, str]:
    """The fields of draft-ietf-httpapi-ratelimit-headers: what a key may do, and what is left of it for how long."""
    return {"RateLimit-Policy": f'"key";q={requests};w={window}', "RateLimit": f'"key";r={left};t={reset}'}
