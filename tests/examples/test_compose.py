"""The compose files can be read, and name nothing that the service, its image or its command does not have."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.settings import Settings, describe_unknown_variables
from tests.examples.documents import blocks

ROOT = Path(__file__).resolve().parents[2]
(_IN_SCALE,) = (content for language, content in blocks("docs/reference/scale.md") if language == "yaml")
TEXTS = {"docs/reference/scale.md": _IN_SCALE, "docker-compose.yml": (ROOT / "docker-compose.yml").read_text()}
_VARIABLE = re.compile(r"\$\{(\w+)(?::[-?]([^}]*))?\}")
# What the image runs when nothing is said: its ENTRYPOINT and CMD.
COMMAND = ["python", "-m", "app"], ["serve"]


def read(name: str) -> Mapping[str, Any]:
    """A compose file with its variables replaced as an operator would have them."""
    given = {"POSTGRES_PASSWORD": "secret", "STORE_SECRET": "secret"}
    text = _VARIABLE.sub(lambda found: given.get(found[1], found[2] or ""), TEXTS[name])
    found: Mapping[str, Any] = yaml.safe_load(text)
    return found


def ours(name: str) -> Mapping[str, Any]:
    """The services that run the image of this project."""
    return {key: one for key, one in read(name)["services"].items() if one["image"] == "prevail"}


@pytest.mark.parametrize("name", TEXTS)
def test_everything_that_is_named_is_there(name: str) -> None:
    file = read(name)
    assert file.keys() <= {"name", "services", "volumes", "configs", "x-prevail"}
    for one in file["services"].values():
        waits = one.get("depends_on", [])
        assert set(waits) <= file["services"].keys()
        for other in waits:
            condition = waits[other]["condition"] if isinstance(waits, dict) else "service_started"
            if condition == "service_healthy":
                assert "test" in file["services"][other]["healthcheck"]
            elif condition == "service_completed_successfully":
                assert file["services"][other]["restart"] == "no"
        for volume in one.get("volumes", []):
            assert volume.partition(":")[0] in file["volumes"]
        for config in one.get("configs", []):
            assert config["source"] in file["configs"]
    hosts = {host for one in ours(name).values() for host in re.findall(r"(?:@|//)(\w[\w-]*):\d", str(one))}
    assert hosts <= file["services"].keys()


@pytest.mark.parametrize("name", TEXTS)
def test_settings_of_the_files_are_settings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(ours(name)) >= 2
    for service, one in ours(name).items():
        assert describe_unknown_variables(one["environment"]) == [], service
        with monkeypatch.context() as patched:
            for variable, value in one["environment"].items():
                # Compose takes texts and numbers, and no other kind.
                assert isinstance(value, (str, int)) and not isinstance(value, bool), (service, variable)  # noqa: PT018
                patched.setenv(variable, str(value))
            settings = Settings()
        assert settings.database_url is not None
        assert settings.data_dir == Path("data")


@cache
def helped(arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """What a command says of itself."""
    return subprocess.run([sys.executable, *arguments, "--help"], capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_what_they_run_is_there_and_only_a_service_is_asked_how_it_is(name: str) -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert f"ENTRYPOINT {json.dumps(COMMAND[0])}\nCMD {json.dumps(COMMAND[1])}\n" in dockerfile
    for service, one in ours(name).items():
        entry, command = one.get("entrypoint", COMMAND[0]), one.get("command", COMMAND[1])
        answer = helped((*entry[1:], *command))
        assert answer.returncode == 0, (service, answer.stderr)
        for option in re.findall(r"--[\w-]+", " ".join(command)):
            assert option in answer.stdout, (service, option)
        disabled = one.get("healthcheck", {}).get("disable", False)
        assert disabled == ((entry, command) != COMMAND), service


@pytest.mark.parametrize("name", TEXTS)
def test_the_image_can_be_built_of_what_its_build_may_see(name: str) -> None:
    seen = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    copied = re.findall(r"^COPY (?!--from)(\S+) ", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert sorted(copied) == sorted(one for one in seen if not one.startswith("**"))
    assert all((ROOT / one).exists() for one in copied)
    assert {one["build"] for one in ours(name).values()} == {"."}


def test_containers_have_limits() -> None:
    for service, one in read("docker-compose.yml")["services"].items():
        assert re.fullmatch(r"\d+g", one["mem_limit"]), service
        assert one["pids_limit"] >= 256, service
        assert all(re.fullmatch(r"/tmp:size=\d+g", place) for place in one.get("tmpfs", [])), service  # noqa: S108


def test_connections_of_all_of_them_are_fewer_than_the_database_allows() -> None:
    services = read("docs/reference/scale.md")["services"]
    settings = Settings(database_url="postgresql://u@h/d")
    most = services["service"]["deploy"]["replicas"] * (settings.pool_size + 1)
    most += services["worker"]["deploy"]["replicas"] * (settings.pool_size + 1 + 9)
    assert f"{most} here" in (ROOT / "docs/reference/scale.md").read_text()
    assert most < int(services["db"]["command"][-1].removeprefix("max_connections="))
