"""The command line, as processes of their own: the real doors before a small application and two migrations."""

import json
import os
import signal
import socket
from pathlib import Path

import pytest

import app
from app import cli, serving
from app.embedded.cluster import free_port, wait_until
from tests.cli.conftest import MIGRATION, Service, password_of, write

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("number", "workers"), [(signal.SIGTERM, "2"), (signal.SIGINT, "1")])
def test_serves_on_the_embedded_database_and_stops_cleanly(
    service: Service, workers: str, number: signal.Signals
) -> None:
    service.settings["PREVAIL_WORKERS"] = workers
    service.start()
    assert service.process is not None
    facts = service.ask()
    assert facts["database"]
    assert facts["folder"] == str(service.data_dir)
    # On asyncio's loop sockets of several workers have no TCP_NODELAY: every second request on a kept connection takes
    # 40 ms more.
    assert facts["loop"] == "uvloop"
    assert (facts["pid"] == service.process.pid) == (workers == "1")
    assert len(service.leftovers()) > 1
    assert service.command("health").returncode == 0
    unready = service.command("health", "--ready")
    assert unready.returncode == 1
    assert "answered 503" in unready.stdout
    said = service.stop(number)
    assert f"http://127.0.0.1:{service.port}/docs" in said
    assert str(service.data_dir) in said
    assert service.process.returncode == 0
    assert service.leftovers() == []
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("host", "authentication", "expected"),
    [
        ("127.0.0.1", "auto", "access   no key needed as long as there is none; listens on 127.0.0.1, which only this"),
        ("0.0.0.0", "auto", "access   with an API key; as long as there is none, from this machine only"),  # noqa: S104
        ("127.0.0.1", "keys", "access   with an API key only; make the first by `prevail keys create --scope admin`"),
        ("127.0.0.1", "off", "access   no authentication; listens on 127.0.0.1, which only this machine reaches"),
        ("0.0.0.0", "off", "WARNING  no authentication, and it listens on 0.0.0.0: whoever reaches port"),  # noqa: S104
    ],
)
def test_says_at_start_who_needs_a_key(made_service: Service, host: str, authentication: str, expected: str) -> None:
    service = made_service
    service.settings |= {"PREVAIL_HOST": host, "PREVAIL_AUTHENTICATION": authentication}
    service.start()
    assert expected in service.stop(signal.SIGTERM)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104
        ("::", False),
        ("192.0.2.7", False),
        ("no-such-host.invalid", False),
    ],
)
def test_knows_which_addresses_are_loopback(host: str, loopback: bool) -> None:
    assert cli.listens_on_loopback(host) is loopback


def test_a_killed_service_leaves_nothing_and_starts_again(made_service: Service) -> None:
    service = made_service
    service.settings["PREVAIL_WORKERS"] = "2"
    service.start()
    assert service.process is not None
    os.kill(service.process.pid, signal.SIGKILL)
    service.process.wait()
    assert wait_until(lambda: not service.leftovers() and not service.answers(), 30)
    service.process.communicate()
    service.start()
    assert service.ask()["database"]


def test_a_second_service_on_the_same_data_is_refused(service: Service) -> None:
    service.start()
    second = Service(service.house, service.data_dir).command("serve")
    assert second.returncode == 1
    assert "in use by another service" in second.stdout
    assert "Traceback" not in second.stdout
    assert service.ask()["database"]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_taken_port_is_found_before_anything_is_made(service: Service, workers: str) -> None:
    service.settings["PREVAIL_WORKERS"] = workers
    with socket.create_server(("127.0.0.1", service.port)):
        refused = service.command("serve")
    assert refused.returncode == 1
    assert refused.stdout.strip() == (
        f"prevail: port {service.port} of 127.0.0.1 is in use by another program; "
        "stop that one, or choose another port by PREVAIL_PORT"
    )
    assert not service.data_dir.exists()


def test_of_two_that_start_at_once_one_has_the_port() -> None:
    port = free_port()
    first, second = serving.take_address("127.0.0.1", port), serving.take_address("127.0.0.1", port)
    serving.listen(first, "127.0.0.1", port)
    with pytest.raises(serving.CannotListen, match=f"port {port} of 127.0.0.1 is in use"):
        serving.listen(second, "127.0.0.1", port)
    for taken in (*first, *second):
        taken.close()


@pytest.mark.parametrize(
    ("host", "said"),
    [("no-such-host.invalid", "is no address of this machine"), ("192.0.2.7", "cannot listen on port")],
)
def test_an_address_of_another_machine_is_refused(host: str, said: str) -> None:
    with pytest.raises(serving.CannotListen, match=rf"{said}.*PREVAIL_HOST"):
        serving.take_address(host, free_port())


def test_a_name_is_listened_on_with_all_its_addresses() -> None:
    port = free_port()
    taken = serving.take_address("localhost", port)
    assert {each.getsockname()[0] for each in taken} >= {"127.0.0.1"}
    assert {each.getsockname()[1] for each in taken} == {port}
    for each in taken:
        each.close()


def test_a_data_folder_that_is_a_file_is_refused(service: Service) -> None:
    service.data_dir.write_text("")
    refused = service.command("serve")
    assert refused.returncode == 1
    assert f"expected PREVAIL_DATA_DIR to be a folder that can be written, {service.data_dir} is not" in refused.stdout
    assert "Traceback" not in refused.stdout


@pytest.mark.parametrize("command", ["serve", "migrate", "health"])
def test_a_misspelt_setting_is_refused(service: Service, command: str) -> None:
    service.settings |= {"PREVAIL_WORKER": "4", "PREVAIL_TEST_DATABASE_URL": "x", "PREVAIL_SERVICE_HOST": "10.0.0.1"}
    refused = service.command(command)
    assert refused.returncode == 1
    assert refused.stdout.strip() == (
        "prevail: PREVAIL_WORKER: there is no such setting; did you mean PREVAIL_WORKERS?"
    )
    assert not service.data_dir.exists()


def test_an_external_database_is_migrated_by_hand(external: Service) -> None:
    refused = external.command("serve")
    assert refused.returncode == 1
    assert "has no schema yet, this release needs second; run `prevail migrate` first" in refused.stdout
    assert external.command("migrate", "first").returncode == 0
    refused = external.command("serve")
    assert refused.returncode == 1
    assert "is at revision first, this release needs second; run `prevail migrate` first" in refused.stdout
    migrated = external.command("migrate")
    assert migrated.returncode == 0, migrated.stdout
    assert "The schema is at revision second." in migrated.stdout
    external.start()
    assert external.ask()["database"]
    said = external.stop(signal.SIGTERM)
    assert password_of(external) not in said + refused.stdout + migrated.stdout
    assert not external.data_dir.exists()


def test_a_schema_of_a_newer_release_is_refused(external: Service) -> None:
    newer = external.house / "alembic" / "versions" / "third.py"
    write(newer, MIGRATION.format(revision="third", before="second"))
    try:
        assert external.command("migrate").returncode == 0
    finally:
        newer.unlink()
    refused = external.command("serve")
    assert refused.returncode == 1
    assert "is at revision third, this release needs second; run the release that it was migrated for" in refused.stdout


def test_migrate_reaches_the_embedded_database_too(made_service: Service) -> None:
    migrated = made_service.command("migrate")
    assert migrated.returncode == 0, migrated.stdout
    assert "second" in migrated.stdout
    assert made_service.leftovers() == []


def test_migrate_makes_no_database(service: Service) -> None:
    refused = service.command("migrate")
    assert refused.returncode == 1
    assert "only `prevail serve` makes a database" in refused.stdout
    assert not service.data_dir.exists()


def test_health_is_that_of_the_service_that_is_named(made_service: Service) -> None:
    made_service.start()
    elsewhere = Service(made_service.house, made_service.data_dir)
    elsewhere.settings["PREVAIL_URL"] = f"http://127.0.0.1:{made_service.port}/"
    asked = elsewhere.command("health")
    assert asked.returncode == 0, asked.stdout
    assert json.loads(asked.stdout)["pid"]


def test_an_unknown_revision_is_refused(external: Service) -> None:
    refused = external.command("migrate", "nonsense")
    assert refused.returncode == 1
    assert "'nonsense' is not possible" in refused.stdout
    assert "Traceback" not in refused.stdout


def test_a_database_that_does_not_answer_is_waited_for_and_named(service: Service) -> None:
    service.settings |= {
        "PREVAIL_DATABASE_URL": f"postgresql://u:hunter2@127.0.0.1:{free_port()}/d",
        "PREVAIL_DATABASE_WAIT_SECONDS": "0.5",
    }
    for command in ("serve", "migrate"):
        refused = service.command(command)
        assert refused.returncode == 1
        assert refused.stdout.count("waiting up to 0.5 s for the database") == 1
        assert "the database did not answer for 0.5 s" in refused.stdout
        assert "hunter2" not in refused.stdout


def test_a_wrong_password_is_refused_at_once(external: Service) -> None:
    external.settings["PREVAIL_DATABASE_URL"] = external.settings["PREVAIL_DATABASE_URL"].replace(
        password_of(external), "hunter2"
    )
    refused = external.command("serve")
    assert refused.returncode == 1
    assert "the database refuses: password authentication failed" in refused.stdout
    assert "hunter2" not in refused.stdout


def test_a_setting_that_does_not_fit_is_named(service: Service) -> None:
    service.settings |= {"PREVAIL_WORKERS": "none"}
    refused = service.command("serve")
    assert refused.returncode == 1
    assert "PREVAIL_WORKERS: " in refused.stdout
    assert "Traceback" not in refused.stdout


def test_health_of_nothing(service: Service) -> None:
    refused = service.command("health")
    assert refused.returncode == 1
    assert "does not answer" in refused.stdout


def test_without_migrations_beside_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(app, "MIGRATIONS", tmp_path / "alembic")
    with pytest.raises(cli.CommandError, match=r"alembic\.ini is missing"):
        cli.alembic_config()
