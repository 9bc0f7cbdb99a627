"""Requests of keys and webhooks."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints, field_validator
from pydantic_core import PydanticCustomError

from app.api.bodies.parsing import Wire
from app.api.v1.requests.fields import KeptMoment, Name
from app.domain.identifiers import PROJECT_NAME
from app.domain.operations import Scope
from app.services.webhooks import is_secret

_WEEK = 7 * 24 * 3600


class KeyRequest(Wire):
    """A key that is to be made."""

    name: Name = Field(description="What it is for, as lists and the audit log show it.")
    project: Annotated[str, StringConstraints(pattern=PROJECT_NAME)] | None = Field(
        None, description="The project it acts in; by default that of the request."
    )
    scopes: list[Scope] = Field(
        min_length=1, max_length=3, description="What it may do; `write` includes `read`, `admin` both."
    )
    expires_at: KeptMoment | None = Field(None, description="When it ends; with an offset from UTC.")
    rate: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = Field(
        None, description="How often it may be used, such as `100/second; 10000/hour`; per worker of the service."
    )
    daily_quota: int | None = Field(None, ge=1, le=2**53, description="Requests per day (UTC), over all workers.")


class RotationRequest(Wire):
    """Options of the rotation of a key's secret."""

    overlap_seconds: int = Field(0, ge=0, le=_WEEK, description="How many seconds the previous secret stays valid.")


_MOST_URL = 2000


# All events but the test.
Subscribed = Literal["evaluation.created", "gate.checked", "job.finished", "model.changed"]


class WebhookRequest(Wire):
    """A webhook that is to be made or changed."""

    url: str = Field(
        min_length=1,
        max_length=_MOST_URL,
        pattern=r"^https?://[!-~]+$",
        description="The address that events are sent to, by POST: `https`, or `http` inside a network that you trust.",
    )
    events: list[Subscribed] = Field(min_length=1, max_length=4, description="Which events are sent.")
    secret: str | None = Field(
        None,
        max_length=100,
        description="The secret that messages are signed with: `whsec_` and 24 to 64 bytes in Base64. When left out, a "
        "new webhook gets one that is shown once, and an existing webhook keeps its own.",
        json_schema_extra={"pattern": "^whsec_[A-Za-z0-9+/]{32}$"},
    )

    @field_validator("url")
    @classmethod
    def check_url(cls, url: str) -> str:
        """Refuse what has no host, and what would be sent along in clear text."""
        try:
            parts = urlsplit(url)
            usable = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc and not parts.fragment
        except ValueError:
            usable = False
        if not usable:
            raise PydanticCustomError(
                "webhook_url", "expected an address such as https://hooks.example/in, without a user and a fragment"
            )
        return url

    @field_validator("secret")
    @classmethod
    def check_secret(cls, secret: str | None) -> str | None:
        """Refuse what no receiver could check with."""
        if secret is not None and not is_secret(secret):
            raise PydanticCustomError("webhook_secret", "expected whsec_ and 24 to 64 bytes in Base64")
        return secret
