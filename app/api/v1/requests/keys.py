"""What routes of keys are asked."""

from typing import Annotated, Any

from pydantic import AwareDatetime, BeforeValidator, Field, Strict, StringConstraints
from pydantic_core import PydanticCustomError

from app.api.bodies.parsing import Wire
from app.api.v1.requests.fields import Name
from app.domain.operations import PROJECT_NAME, NewKey, Scope

KEYS: dict[str, Any] = {
    "pipeline": {"name": "ci", "scopes": ["write"]},
    "limited": {
        "name": "dashboard",
        "project": "fraud",
        "scopes": ["read"],
        "expires_at": "2099-01-01T00:00:00Z",
        "rate": "50/second; 10000/hour",
        "daily_quota": 100_000,
    },
}
ROTATIONS: dict[str, Any] = {"at once": {}, "with an hour to change over": {"overlap_seconds": 3600}}
_WEEK = 7 * 24 * 3600


def _text(value: Any) -> Any:
    if not isinstance(value, str) or value.isdecimal():
        raise PydanticCustomError("datetime", "expected a date and a time, such as 2026-01-31T12:00:00Z")
    return value


# Text is the only form of a moment that JSON has; without an offset nobody knows which it is.
End = Annotated[AwareDatetime, Strict(False), BeforeValidator(_text)]  # noqa: FBT003 - pydantic's signature


class KeyRequest(Wire):
    """A key that is to be made."""

    name: Name = Field(description="What it is for, as lists and the trail of changes show it.")
    project: Annotated[str, StringConstraints(pattern=PROJECT_NAME)] | None = Field(
        None, description="The project it acts in; by default that of the request."
    )
    scopes: list[Scope] = Field(
        min_length=1, max_length=3, description="What it may do; `write` includes `read`, `admin` both."
    )
    expires_at: End | None = Field(None, description="When it ends; with an offset from UTC.")
    rate: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = Field(
        None, description="How often it may be used, such as `100/second; 10000/hour`; per worker of the service."
    )
    daily_quota: int | None = Field(None, ge=1, le=2**53, description="Requests per day (UTC), over all workers.")

    def to_domain(self, project: str) -> NewKey:
        """The domain's name for it; ``project`` when it names none."""
        return NewKey(
            name=self.name,
            project=self.project or project,
            scopes=self.scopes,
            expires_at=self.expires_at,
            rate=self.rate,
            daily_quota=self.daily_quota,
        )


class RotationRequest(Wire):
    """How a key gets another secret."""

    overlap_seconds: int = Field(0, ge=0, le=_WEEK, description="How many seconds the previous secret stays valid.")
