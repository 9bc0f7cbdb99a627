"""What tests of use cases share."""

import pytest

from tests.services import paired_models

START = paired_models.RANDOM.bit_generator.state


@pytest.fixture(autouse=True)
def _own_draws() -> None:
    """What is drawn in a test hangs on no test before it."""
    paired_models.RANDOM.bit_generator.state = START
