"""What a worker of a cluster does with a task. Its scheduler imports this too, so nothing large is imported here."""

import hashlib
import pickle
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np

import app
from app.domain.errors import ClusterUnavailable
from app.services.processes.memory import keep_freed_memory
from app.services.processes.worker import outcome_of


@cache
def release() -> Mapping[str, str]:
    """What answers depend on, by name: they are the same bit for bit where all of it is."""
    code = hashlib.sha256()
    root = Path(app.__file__).parent
    for path in sorted(root.rglob("*.py")):
        code.update(f"{path.relative_to(root)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    # Processors with other instructions may round logarithms differently.
    logarithms = np.log(np.random.default_rng(0).random(1 << 14)).tobytes()
    return {
        "the code of the service": code.hexdigest()[:12],
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "numpy": version("numpy"),
        "pyarrow": version("pyarrow"),
        "logarithms of the processor": hashlib.sha256(logarithms).hexdigest()[:12],
    }


@cache
def _keep_freed_memory_once() -> None:
    # Those who start workers have them give back everything: most of their time would go into pages that are new.
    keep_freed_memory()


def carry_out(expected: Mapping[str, str], task: bytes) -> bytes:
    """The outcome of a pickled call, pickled too, for a service of the release that is expected."""

    def checked() -> object:
        _keep_freed_memory_once()
        own = release()
        other = [name for name, value in expected.items() if own.get(name) != value]
        if other:
            found = "; ".join(f"{name}: {expected[name]} in the service, {own.get(name)} there" for name in other)
            raise ClusterUnavailable(f"expected workers that are what the service is, one differs: {found}")
        return pickle.loads(task)()  # noqa: S301 - the service's own

    return outcome_of(checked)
