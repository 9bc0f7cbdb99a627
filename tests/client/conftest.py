"""The client before the real service: over HTTP, on a database of the module's own."""

from collections.abc import Callable, Iterator

import httpx
import prevail
import pytest
from prevail.wire.exchange import Retries
from pydantic import SecretStr

from app.settings import Authentication, Settings
from tests.serving import Served

MATRIX = [[800, 0, 0, 0], [0, 600, 0, 0], [0, 0, 500, 0], [40, 24, 20, 16]]
BETTER = [[772, 10, 8, 10], [6, 580, 4, 10], [5, 5, 482, 8], [9, 10, 10, 71]]
LABELS = ["A", "B", "C", "D"]
# Without waiting, so that tests are quick.
AT_ONCE = Retries(times=4, first=0.0)


@pytest.fixture(scope="session", autouse=True)
def _nobodys_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No key or address of who runs the tests is used by them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(scope="module")
def base_url(database_url: str) -> Iterator[str]:
    with Served(Settings(database_url=SecretStr(database_url), authentication=Authentication.off)) as url:
        yield url


@pytest.fixture(scope="module")
def pv(base_url: str) -> Iterator[prevail.Client]:
    with prevail.Client(base_url) as client:
        yield client


Handler = Callable[[httpx.Request], httpx.Response]


def speaking_to(handler: Handler, retries: Retries = AT_ONCE) -> prevail.Client:
    """A client of something that answers as it likes."""
    return prevail.Client("http://elsewhere.test", retries=retries, transport=httpx.MockTransport(handler))
