"""A real server, spoken to over HTTP."""

import threading
import time

import uvicorn

from app.protocol import GuardedProtocol
from app.settings import Settings
from app.telemetry import Telemetry


class Served:
    """The application under uvicorn in a thread, on a free port."""

    def __init__(self, settings: Settings, telemetry: Telemetry | None = None) -> None:
        # Loads the whole service: for those who need it, not for whoever collects the tests.
        from app.main import create_app

        config = uvicorn.Config(
            create_app(settings, telemetry),
            host="127.0.0.1",
            port=0,
            loop="uvloop",
            http=GuardedProtocol,
            log_level="warning",
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
