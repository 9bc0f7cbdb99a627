"""The key that `prevail login` keeps: for one address, for its owner alone, and behind what is given; and colours."""

import getpass
import io
import json
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import prevail
import pytest
from prevail import settings
from prevail.command import colours
from prevail.command.main import main

KEY = "pv_right"


class _Service(BaseHTTPRequestHandler):
    """Takes one key."""

    def do_GET(self) -> None:
        open_to_all = self.path.startswith("/version")
        allowed = open_to_all or self.headers.get("Authorization") == f"Bearer {KEY}"
        found: dict[str, object] = {"version": "1.2"} if open_to_all else {"items": [], "next_cursor": None}
        body = json.dumps(found if allowed else {"code": "unauthorized", "detail": "this key is none", "status": 401})
        self.send_response(200 if allowed else 401)
        self.send_header("Content-Type", "application/json" if allowed else "application/problem+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Service) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where settings are kept, without any in the environment."""
    for name in ("PREVAIL_URL", "PREVAIL_API_KEY", "PREVAIL_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "prevail" / "config.toml"


class _Typed(io.StringIO):
    def isatty(self) -> bool:
        return True


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        code = main([*arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return command


def test_a_key_is_kept_for_its_address_and_its_owner(
    url: str, file: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = run("login", "--url", f"{url}/", "--stdin", stdin=f"{KEY}\n")
    assert (code, out) == (0, "")
    assert KEY not in err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [one.name for one in file.parent.iterdir()] == ["config.toml"]
    with prevail.Client() as client:
        assert (client.url, client.settings.key) == (url, KEY)
        assert client.headers["Authorization"] == f"Bearer {KEY}"
    code, out, _ = run("models", "--json")
    assert (code, json.loads(out)["items"]) == (0, [])
    code, out, _ = run("status")
    assert code == 0
    assert url in out
    assert KEY not in out
    assert json.loads(run("status", "--json")[1])["key"] == f"pv_ri… from {file}"
    monkeypatch.setenv("PREVAIL_API_KEY", "pv_wrong")
    code, out, err = run("status")
    assert (code, "from PREVAIL_API_KEY" in out, "this key is none" in err) == (4, True, True)
    monkeypatch.delenv("PREVAIL_API_KEY")
    # It goes nowhere else.
    elsewhere = prevail.Client("http://elsewhere.test")
    assert "Authorization" not in elsewhere.headers


def test_what_is_given_and_the_environment_win(url: str, file: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("login", "--url", url, "--stdin", stdin=KEY)[0] == 0
    monkeypatch.setenv("PREVAIL_API_KEY", "pv_other")
    assert prevail.Client().settings == settings.Found(url, str(file), "pv_other", "PREVAIL_API_KEY")
    assert prevail.Client(api_key="pv_given").headers["Authorization"] == "Bearer pv_given"
    monkeypatch.setenv("PREVAIL_URL", "http://elsewhere.test/")
    assert prevail.Client().url == "http://elsewhere.test"
    assert prevail.Client(url).url == url
    monkeypatch.delenv("PREVAIL_API_KEY")
    assert prevail.Client().settings.key is None


def test_what_is_refused_is_not_kept(url: str, file: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("login", "--url", url, "--stdin", stdin="pv_wrong\n")[0] == 4
    for nothing in ("", "\n", "two words\n", "schlüssel\n"):
        assert run("login", "--url", url, "--stdin", stdin=nothing)[0] == 3
    code, _, err = run("login", "--url", url, stdin=KEY)
    assert (code, "--stdin" in err) == (3, True)
    assert not file.exists()
    monkeypatch.setattr(getpass, "getpass", lambda _: f" {KEY} ")
    monkeypatch.setattr(sys, "stdin", _Typed())
    assert main(["login", "--url", url]) == 0
    assert settings.kept().keys == {url: KEY}


def test_a_key_is_forgotten(url: str, file: Path, run: Run) -> None:
    settings.keep(settings.Kept(url, {url: KEY, "http://elsewhere.test": 'pv_"\\'}))
    assert run("logout")[0] == 0
    assert settings.kept() == settings.Kept(None, {"http://elsewhere.test": 'pv_"\\'})
    code, _, err = run("logout", "--url", url)
    assert (code, "no key" in err) == (0, True)


def test_a_file_that_others_can_read_is_not_used(url: str, file: Path, run: Run) -> None:
    settings.keep(settings.Kept(url, {url: KEY}))
    file.chmod(0o640)
    code, _, err = run("models")
    assert (code, "chmod 600" in err) == (4, True)
    # Who says both needs no file.
    assert prevail.Client(url, api_key=KEY).settings.key == KEY
    file.write_text("url = 3\n")
    file.chmod(0o644)
    code, _, err = run("models")
    assert (code, "cannot be read" in err) == (5, True)
    file.write_text('url = "http://elsewhere.test"\n')
    assert prevail.Client().url == "http://elsewhere.test"


def test_words_have_colours_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "FAIL (exit 1)  gate g\n  fail   accuracy >= 0.9\n  pass   FAIL >= 0.5\n  failing  0.3\nWARNING  x\nFAILED\n"
    shown = colours.marked(text, on=True)
    assert colours.marked(text, on=False) == text
    assert shown.count("\x1b[31m") == 2
    assert "\x1b[32mpass\x1b[0m   FAIL >= 0.5" in shown
    assert "\x1b[33mWARNING\x1b[0m" in shown
    assert shown.replace("\x1b[0m", "").replace("\x1b[31m", "").replace("\x1b[32m", "").replace("\x1b[33m", "") == text
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert colours.wanted(_Typed())
    assert not colours.wanted(io.StringIO())
    assert colours.wanted(io.StringIO(), "always")
    assert not colours.wanted(_Typed(), "never")
    monkeypatch.setenv("TERM", "dumb")
    assert not colours.wanted(_Typed())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colours.wanted(_Typed())
    assert colours.wanted(_Typed(), "always")
