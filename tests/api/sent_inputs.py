"""What the tests of inputs share: bodies as text, small and large, and that nothing refused is stored."""

from typing import Any

import httpx
import pytest

from tests.api.answers import count_stored

PREDICTIONS: dict[str, Any] = {"kind": "predictions", "y_true": ["a", "b", "b"], "y_pred": ["a", "b", "a"]}
HEADERS = {"Content-Type": "application/json"}


# Bodies from 256 KiB on are read by another parser, which has to come to the same results.
PADDING = {"small": "", "large": " " * 300_000}
either_size = pytest.mark.parametrize("padding", PADDING.values(), ids=PADDING.keys())


def post_text(client: httpx.Client, text: str, padding: str = "") -> httpx.Response:
    return client.post("/v1/evaluations", content=(text + padding).encode(), headers=HEADERS)


def with_input(text: str) -> str:
    return '{"model": {"name": "m"}, "dataset": {"name": "d"}, "input": ' + text + "}"


@pytest.fixture(autouse=True, scope="module")
def nothing_stored_when_refused(client: httpx.Client) -> Any:
    """The tests here only compute or are refused."""
    before = count_stored(client)
    yield
    assert count_stored(client) == before
