"""A real server on a real database for each module, spoken to over HTTP."""

import threading
import time
from collections.abc import Iterator

import httpx
import pytest
import uvicorn
from pydantic import SecretStr

from app.main import create_app
from app.settings import Settings


class Served:
    """The application under uvicorn in a thread, on a free port."""

    def __init__(self, settings: Settings) -> None:
        config = uvicorn.Config(
            create_app(settings), host="127.0.0.1", port=0, loop="uvloop", http="httptools", log_level="warning"
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)

    def __enter__(self) -> str:
        self.thread.start()
        deadline = time.monotonic() + 30
        while not self.server.started:
            assert self.thread.is_alive(), "the server ended before it had started"
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.01)
        port = self.server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self.thread.join(timeout=30)
        assert not self.thread.is_alive(), "the server did not stop"


@pytest.fixture(scope="module")
def settings(database_url: str) -> Settings:
    return Settings(database_url=SecretStr(database_url), max_body_bytes=16 * 1024 * 1024)


@pytest.fixture(scope="module")
def base_url(settings: Settings) -> Iterator[str]:
    with Served(settings) as url:
        yield url


@pytest.fixture(scope="module")
def client(base_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=base_url, timeout=60) as opened:
        yield opened
