"""What routes of webhooks are asked."""

from typing import Any
from urllib.parse import urlsplit

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from app.api.bodies.parsing import Wire
from app.domain.operations import Event
from app.services.webhooks import is_secret

WEBHOOKS: dict[str, Any] = {
    "checks of gates": {"url": "https://hooks.example/prevail", "events": ["gate.checked"]},
    "all there is": {
        "url": "https://hooks.example:8443/in?team=risk",
        "events": ["evaluation.created", "gate.checked", "job.finished"],
        "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    },
}
_MOST_URL = 2000


class WebhookRequest(Wire):
    """A webhook that is to be made or changed."""

    url: str = Field(
        min_length=1,
        max_length=_MOST_URL,
        pattern=r"^https?://[!-~]+$",
        description="The address that events are sent to, by POST: `https`, or `http` inside a network that you trust.",
    )
    events: list[Event] = Field(min_length=1, max_length=3, description="Which events are sent.")
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
