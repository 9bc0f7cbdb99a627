"""`prevail keys …` as a process of its own, on a database that has the schema and on the embedded one."""

import os
import re
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from app.embedded import EmbeddedPostgres, EmbeddedPostgresError, running_dsn
from app.embedded.cluster import read_password
from app.settings import Settings
from tests.serving import Served

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def run(settings: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "app", *arguments],
        cwd=ROOT,
        env=dict(os.environ) | {"PYTHONDONTWRITEBYTECODE": "1"} | settings,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def keys(url: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return run({"PREVAIL_DATABASE_URL": url}, "keys", *arguments)


def test_a_key_from_its_making_to_its_end(database_url: str) -> None:
    made = keys(database_url, "create", "--name", "ci", "--scope", "admin", "--expires", "2099-01-01")
    assert made.returncode == 0, made.stderr
    assert re.fullmatch(r"pv_[0-9a-f]{32}_[A-Za-z0-9_-]{43}\n", made.stdout)
    header, line = keys(database_url, "list").stdout.splitlines()
    assert header.split()[:3] == ["id", "name", "scopes"]
    identifier, name, scopes, expires, *_ = line.split()
    assert (name, scopes, expires) == ("ci", "admin", "2099-01-01")
    assert identifier.replace("-", "") == made.stdout[3:35]
    # In another project there is none.
    assert keys(database_url, "list", "--project", "other").stdout.splitlines() == [
        "id  name  scopes  expires  last used  revoked"
    ]
    absent = keys(database_url, "revoke", identifier, "--project", "other")
    assert (absent.returncode, absent.stdout) == (1, "")
    assert absent.stderr == f"prevail: there is no key {identifier}, or it is revoked\n"
    rotated = keys(database_url, "rotate", identifier)
    assert rotated.stdout[:36] == made.stdout[:36]
    assert rotated.stdout != made.stdout
    assert keys(database_url, "revoke", identifier).returncode == 0
    assert keys(database_url, "rotate", identifier).returncode == 1
    refused = keys(database_url, "create", "--scope", "read", "--rate", "often")
    assert refused.returncode == 1
    assert refused.stderr.startswith("prevail: rate: expected a rate such as 100/second")


def test_the_embedded_database_of_a_running_service_is_found(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    data = tmp_path / "data"
    assert running_dsn(data) is None
    try:
        with EmbeddedPostgres.start(data, durable=False) as server:
            server.create_database()
            found = running_dsn(data)
            assert found == server.dsn()
            assert read_password(server.home) in found
    except EmbeddedPostgresError as error:
        pytest.fail(str(error))
    assert running_dsn(data) is None


@pytest.mark.parametrize("command", ["keys list", "keys create --scope read", "export out", "import out", "check"])
def test_nothing_but_serve_makes_a_database(tmp_path: Path, command: str) -> None:
    refused = run({"PREVAIL_DATA_DIR": str(tmp_path / "data")}, *command.split())
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "only `prevail serve` makes a database" in refused.stderr
    assert not (tmp_path / "data").exists()


def test_keys_are_those_of_the_service_that_is_named(database_url: str, tmp_path: Path) -> None:
    settings = Settings.model_validate({"database_url": database_url, "authentication": "off"})
    with Served(settings) as url:
        named = {"PREVAIL_URL": url, "PREVAIL_DATA_DIR": str(tmp_path / "data")}
        made = run(named, "keys", "create", "--name", "ci", "--scope", "read", "--project", "named", "--quota", "7")
        assert made.returncode == 0, made.stderr
        identifier = made.stdout[3:35]
        listed = run(named, "keys", "list", "--project", "named").stdout
        assert [line.split()[1:3] for line in listed.splitlines()[1:]] == [["ci", "read"]]
        assert listed == keys(database_url, "list", "--project", "named").stdout
        assert run(named, "keys", "rotate", identifier, "--project", "named").stdout[:36] == made.stdout[:36]
        assert run(named, "keys", "revoke", identifier, "--project", "named").returncode == 0
        refused = run(named, "keys", "rotate", identifier, "--project", "named")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr == f"prevail: there is no key {UUID(identifier)}, or it is revoked or expired\n"
    gone = run(named, "keys", "list")
    assert gone.stderr.startswith(f"prevail: no answer from {url} ")


def test_a_whole_project_is_of_the_service_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "prevail").mkdir()
    (tmp_path / "prevail" / "config.toml").write_text('url = "https://prevail.example"\n')
    named = {"XDG_CONFIG_HOME": str(tmp_path), "PREVAIL_DATA_DIR": str(tmp_path / "data")}
    for command in ("export out", "import out", "check"):
        refused = run(named, *command.split())
        assert refused.returncode == 1
        assert "that of the service at https://prevail.example is not known here" in refused.stderr
