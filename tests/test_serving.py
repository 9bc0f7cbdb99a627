"""What the process of the service is given by the system."""

import json
import subprocess
import sys
from collections import Counter

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
