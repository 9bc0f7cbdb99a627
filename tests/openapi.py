"""The OpenAPI document of the service, made once for all modules that look at it."""

from typing import Any, Final

from app.main import create_app
from app.settings import Settings

DOCUMENT: Final[dict[str, Any]] = create_app(Settings()).openapi()
