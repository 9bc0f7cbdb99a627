"""The document as schemathesis knows it, with strategies for the formats that are its own."""

import schemathesis
from hypothesis import strategies as st
from schemathesis.config import SchemathesisConfig

from tests.api.generated.profile import LONG
from tests.api.generated.strategies import one_value, visible_text
from tests.openapi import DOCUMENT

schemathesis.openapi.format("visible-text", visible_text)
schemathesis.openapi.format("visible-lines", visible_text)
schemathesis.openapi.format("metric-expression", one_value)
schemathesis.openapi.format("binary", st.binary(max_size=60))

NEGATIVE_DATA_REJECTION = ("400", "401", "403", "404", "405", "406", "409", "415", "422", "428", "429", "5xx")
# Each test stands for itself: nothing is learnt from the answers of others.
_ALONE = {"extra-data-sources": {"responses": False}}
SCHEMA = schemathesis.openapi.from_dict(
    DOCUMENT,
    config=SchemathesisConfig.from_dict(
        {
            "request-timeout": 60,
            # 431: its address is too long.
            "checks": {"negative_data_rejection": {"expected-statuses": [*NEGATIVE_DATA_REJECTION, "431"]}},
            "phases": {
                "examples": _ALONE,
                "coverage": _ALONE,
                "fuzzing": {**_ALONE, "error-feedback": {"enabled": False}},
                # The links are those of the document, none that are guessed.
                "stateful": {"inference": {"algorithms": []}},
            },
            # NUL is refused wherever text is kept.
            "generation": {"allow-x00": False},
            # Every end of every bound in a body is a thousand requests: in the long run only.
            "operations": []
            if LONG
            else [{"include-method": ["POST", "PUT", "PATCH"], "phases": {"coverage": {"enabled": False}}}],
        }
    ),
)
