"""Requests made of the document, right ones and wrong ones, with all checks of schemathesis.

Checks that find nothing to do here: `ignored_auth` (the service knows no users), `missing_required_header` (no
operation needs one). `use_after_free` and `ensure_resource_availability` are at work in `test_stateful`.
"""

import pytest
import requests

from tests.api.generated.document import SCHEMA
from tests.api.generated.kept import Kept
from tests.api.generated.profile import generated
from tests.api.generated.valid import Case, fill_addresses, is_positive, left_out, make_valid

pytestmark = pytest.mark.slow


@SCHEMA.parametrize()
@generated()
def test_every_answer_is_documented(case: Case, base_url: str, session: requests.Session, kept: Kept) -> None:
    fill_addresses(case, kept)
    if is_positive(case):
        make_valid(case, kept)
    case.call_and_validate(base_url=base_url, session=session, excluded_checks=left_out(case))
