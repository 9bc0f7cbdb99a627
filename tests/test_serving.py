"""What the process of the service is given by the system."""

import subprocess
import sys

import pytest

PROGRAM = """
import logging, resource
from app.serving import allow_open_files
from app.settings import Settings
logging.basicConfig(format="%(message)s")
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
allow_open_files(Settings(connection_limit={connections}))
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "connections", "after", "said"),
    [
        (1024, 5000, 1000, "3152 5000", ""),
        (4000, 5000, 1000, "4000 5000", ""),
        (256, 1024, 290, "1022 1024", ""),
        (256, 1024, 1000, "1024 1024", "lower the setting to 290"),
    ],
)
def test_as_many_files_may_be_open_as_the_settings_need(
    soft: int, hard: int, connections: int, after: str, said: str
) -> None:
    """A limit of the system cannot be raised again by who lowered it, so this is a process of its own."""
    program = PROGRAM.format(soft=soft, hard=hard, connections=connections)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == after
    assert said in done.stderr
    assert bool(said) == bool(done.stderr)
