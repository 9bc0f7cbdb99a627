"""What the process of the service is given by the system."""

import json
import subprocess
import sys
from collections import Counter

import pytest
from pydantic import SecretStr

from app import cli, serving
from app.settings import Settings, normalize_database_url
from tests.bank import each

# A limit of the system cannot be raised again by who lowered it, so each is that of a fork.
PROGRAM = """
import logging, os, resource, sys
from app.serving import allow_open_files
from app.settings import Settings
logging.basicConfig(format="%(message)s", stream=sys.stdout)
for soft, hard, connections in {cases}:
    if os.fork():
        os.wait()
        print("END", flush=True)
        continue
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    allow_open_files(Settings(connection_limit=connections))
    print(*resource.getrlimit(resource.RLIMIT_NOFILE), flush=True)
    os._exit(0)
"""
# Limits, soft and hard, and connections; the limits after it, and what is said.
CASES = [
    ((1024, 5000, 1000), "3152 5000", ""),
    ((4000, 5000, 1000), "4000 5000", ""),
    ((256, 1024, 290), "1022 1024", ""),
    ((256, 1024, 1000), "1024 1024", "lower the setting to 290"),
]


def test_as_many_files_may_be_open_as_the_settings_need() -> None:
    program = PROGRAM.format(cases=[case for case, _, _ in CASES])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert not done.stderr
    answers = [answer.splitlines() for answer in done.stdout.split("END\n")[:-1]]
    for (case, after, said), (*warnings, limits) in zip(CASES, answers, strict=True):
        assert limits == after, case
        assert said in "".join(warnings), case
        assert bool(said) == bool(warnings), case


def test_the_log_has_what_the_setting_says() -> None:
    program = """
import logging
from app.serving import configure_logging
from app.settings import LogLevel, Settings
for level in LogLevel:
    configure_logging(Settings(log_level=level))
    for number in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        logging.getLogger("prevail.retention").log(number, "for %s", level.value)
    logging.getLogger("prevail.requests").info('{"for": "%s"}', level.value)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    said = [line.rpartition(" ")[2] for line in done.stderr.splitlines()]
    assert Counter(said) == {"debug": 4, "info": 3, "warning": 2, "error": 1}
    assert [json.loads(line)["for"] for line in done.stdout.splitlines()] == ["debug", "info", "warning", "error"]


def test_a_command_that_serves_nothing_loads_no_service() -> None:
    """Else a health check every few seconds takes a second of a processor."""
    looked = "import sys, app.cli; print(*sorted({'fastapi', 'numpy', 'sqlalchemy'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", looked], capture_output=True, text=True, check=True).stdout == "\n"


@each("host", ["a..b", "a" * 64])
def test_what_can_be_no_name_of_a_host_is_no_address(host: str) -> None:
    with pytest.raises(serving.CannotListen, match=r"is no address of this machine.*PREVAIL_HOST"):
        serving.take_address(host, 8000)
    assert not cli.listens_on_loopback(host)


@each("url", ["http://localhost:x", "http://a..b", "http://[::1", "http://local host"])
def test_an_address_that_is_none_does_not_answer(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("PREVAIL_URL", url)
    with pytest.raises(cli.CommandError, match="/healthz does not answer: "):
        cli.ask_health(Settings(), "/healthz")


@each("parameter", ["port=x", "prepared_statement_cache_size=x"])
def test_a_url_that_the_driver_refuses_is_said_in_a_sentence(parameter: str) -> None:
    url = SecretStr(normalize_database_url(f"postgresql://u:hunter2@h/d?{parameter}"))
    with pytest.raises(cli.CommandError, match=r"PREVAIL_DATABASE_URL: (?!.*hunter2).*'x'"):
        cli.read_revision(url, 0)
