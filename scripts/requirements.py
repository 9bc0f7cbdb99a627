"""Pin the requirements (`--uv PATH`), or check them against `pyproject.toml` (`--check`).

Each file under `requirements/` holds the exact versions and hashes of one way to use the project, for every supported
Python and platform at once, and names no host.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / "requirements"
# File -> the extras of pyproject.toml it holds besides the dependencies of the service itself.
FILES: Final[Mapping[str, tuple[str, ...]]] = {
    "base.txt": (),
    "run.txt": ("embedded", "clone", "figures"),
    "dev.txt": ("dev",),
    "slow.txt": ("dev", "slow"),
    "bench.txt": ("dev", "slow", "bench"),
}
PIN: Final = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)")
FOREIGN: Final = re.compile(r"://|^-(?!-hash)|^--(?!hash)|@|(^|\s)[./~]")


def lock(uv: str) -> None:
    """Resolve all files with one set of versions."""
    command = [uv, "pip", "compile", "pyproject.toml", "--universal", "--python-version", "3.11", "--generate-hashes"]
    command += ["--no-annotate", "--custom-compile-command", "make lock", "--quiet", "--upgrade"]
    with tempfile.NamedTemporaryFile(suffix=".txt") as together:
        subprocess.run([*command, "--all-extras", "-o", together.name], cwd=ROOT, check=True)
        for name, extras in FILES.items():
            chosen = [part for extra in extras for part in ("--extra", extra)]
            target = FOLDER / name
            target.unlink(missing_ok=True)
            subprocess.run([*command, *chosen, "-c", together.name, "-o", str(target)], cwd=ROOT, check=True)


def declared(project: Mapping[str, Any], extras: tuple[str, ...]) -> Iterator[Requirement]:
    """What `pyproject.toml` asks for with these extras; an extra that names this project again is opened."""
    optional = project["optional-dependencies"]
    for line in [*project["dependencies"], *(line for extra in extras for line in optional[extra])]:
        requirement = Requirement(line)
        if requirement.name != project["name"]:
            yield requirement
        else:
            for extra in sorted(requirement.extras):
                yield from map(Requirement, optional[extra])


def read_pins(text: str) -> dict[str, set[Version]]:
    """Versions of each package in a requirements file; several where they differ by Python version."""
    pins: dict[str, set[Version]] = {}
    for line in text.splitlines():
        if match := PIN.match(line):
            pins.setdefault(canonicalize_name(match["name"]), set()).add(Version(match["version"]))
    return pins


def problems() -> Iterator[str]:
    """What is wrong with the files, a sentence each."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    everywhere: dict[str, set[Version]] = {}
    for name, extras in FILES.items():
        text = (FOLDER / name).read_text()
        pins = read_pins(text)
        for requirement in declared(project, extras):
            versions = pins.get(canonicalize_name(requirement.name), set())
            if not versions:
                yield f"{name}: {requirement.name} of pyproject.toml is not pinned"
            for version in versions:
                if version not in requirement.specifier:
                    yield f"{name}: {requirement.name}=={version} does not satisfy {requirement.specifier}"
        for package, versions in pins.items():
            if everywhere.setdefault(package, versions) != versions:
                yield f"{name}: {package} has another version than in an earlier file"
        for number, line in enumerate(text.splitlines(), start=1):
            if line.startswith("#"):
                continue
            if FOREIGN.search(line.strip().removesuffix("\\")):
                yield f"{name}:{number}: names a host, a path or an option: {line.strip()}"
            if PIN.match(line) and not line.rstrip().endswith("\\"):
                yield f"{name}:{number}: has no hash: {line.strip()}"


def main() -> int:
    """Run one of the two; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--check", action="store_true", help="check the files against pyproject.toml")
    task.add_argument("--uv", help="write the files with this uv")
    chosen = parser.parse_args()
    if chosen.uv:
        lock(chosen.uv)
    found = list(problems())
    for problem in found:
        print(f"requirements/{problem}", file=sys.stderr)
    if found:
        print("run `make lock`", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
