"""Half a million rows of probabilities from Python to the service: `python -m benchmarks.uploads`.

By the client, with a progress bar, and by hand with httpx: as JSON, which is what one would write first, and as a file
of Parquet or Arrow in a form. Each way in a process of its own, which has the arrays already: how long until the answer
is there, CPU time, and the most memory beyond what it had; and the CPU time of the service. Linux only.
"""

import argparse
import io
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import numpy as np
import prevail
import pyarrow as pa
import pyarrow.parquet
from prevail.uploads import inputs

from benchmarks.ingest import CLASSES, _cpu_seconds, make, served

ROWS, ROUNDS = 500_000, 3
PATH = "/v1/metrics/compute"
Arrays = Mapping[str, Any]


def by_client(url: str, arrays: Arrays) -> float:
    """As the client does it where pyarrow is installed."""
    with prevail.Client(url, timeout=600) as client:
        run = client.evaluate(arrays["truth"], probabilities=arrays["matrix"], progress=True)
    return float(run["accuracy"])


def by_client_as_json(url: str, arrays: Arrays) -> float:
    """As it does it without."""
    with patch.object(inputs, "has_arrow", lambda: False):
        return by_client(url, arrays)


def by_hand_as_json(url: str, arrays: Arrays) -> float:
    """Lists in a dictionary."""
    source = {"kind": "probabilities", "y_true": arrays["truth"].tolist(), "probabilities": arrays["matrix"].tolist()}
    return _accuracy(httpx.post(url + PATH, json={"input": source}, timeout=600, trust_env=False))


def by_hand_as_parquet(url: str, arrays: Arrays) -> float:
    """A file in memory, in a form."""
    sink = io.BytesIO()
    pa.parquet.write_table(_table(arrays), sink)
    return _form(url, "data.parquet", sink.getvalue())


def by_hand_as_arrow(url: str, arrays: Arrays) -> float:
    """The same of Arrow."""
    sink, table = io.BytesIO(), _table(arrays)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return _form(url, "data.arrow", sink.getvalue())


def _table(arrays: Arrays) -> pa.Table:
    columns = {str(code): arrays["matrix"][:, code] for code in range(CLASSES)}
    return pa.table({"y_true": arrays["truth"], **columns})


def _form(url: str, name: str, data: bytes) -> float:
    asked = json.dumps({"input": {"kind": "probabilities", "labels": [str(code) for code in range(CLASSES)]}})
    files: dict[str, Any] = {"evaluation": (None, asked, "application/json"), "data": (name, data)}
    return _accuracy(httpx.post(url + PATH, files=files, timeout=600, trust_env=False))


def _accuracy(reply: httpx.Response) -> float:
    reply.raise_for_status()
    return float(reply.json()["metrics"]["prevalence_sensitive"]["accuracy"])


WAYS: Mapping[str, tuple[str, Callable[[str, Arrays], float]]] = {
    "client": ("client, progress bar (Arrow)", by_client),
    "client_json": ("client, progress bar, without pyarrow (JSON)", by_client_as_json),
    "json": ("httpx, `json=` of lists", by_hand_as_json),
    "parquet": ("httpx, a form with Parquet", by_hand_as_parquet),
    "arrow": ("httpx, a form with Arrow", by_hand_as_arrow),
}


def send(way: str, url: str, folder: Path) -> dict[str, float]:
    """Send what lies in a folder, in this process."""
    arrays = {name: np.load(folder / f"{name}.npy") for name in ("truth", "matrix")}
    # What is imported and built at first use is no memory of this upload.
    WAYS[way][1](url, {name: one[:5000] for name, one in arrays.items()})
    Path("/proc/self/clear_refs").write_text("5")
    before, used, started = _peak(), time.process_time(), time.perf_counter()
    accuracy = WAYS[way][1](url, arrays)
    took, cpu = time.perf_counter() - started, time.process_time() - used
    return {"seconds": took, "cpu": cpu, "memory": _peak() - before, "accuracy": accuracy}


def _peak() -> float:
    """The most memory that the process has held since it was last asked to forget, in MB."""
    (found,) = re.findall(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found) / 1e3


def measured(way: str, url: str, folder: Path, service: int) -> dict[str, float]:
    """The same in a process of its own, with what the service needs for it."""
    command = [sys.executable, "-m", "benchmarks.uploads", "--send", way, "--url", url, "--folder", str(folder)]
    before = _cpu_seconds(service)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, float] = json.loads(done.stdout)
    drawn = "uploading" in done.stderr
    if drawn is not way.startswith("client"):
        raise RuntimeError(f"{way}: expected a bar of the client alone")
    return found | {"service": _cpu_seconds(service) - before}


def main() -> None:
    """Print the table, or send once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--send", choices=WAYS)
    parser.add_argument("--url")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    asked = parser.parse_args()
    if asked.send:
        print(json.dumps(send(asked.send, asked.url, asked.folder)))
        return
    with tempfile.TemporaryDirectory(prefix="prevail-bench-") as name:
        truth, matrix = make(asked.rows)
        np.save(Path(name) / "truth.npy", truth)
        np.save(Path(name) / "matrix.npy", matrix)
        held = (truth.nbytes + matrix.nbytes) / 1e6
        few = {"truth": truth[:5000], "matrix": matrix[:5000]}
        del truth, matrix
        with served() as (url, service):
            # What it makes at first use is no time of these uploads.
            by_hand_as_json(url, few)
            rounds = [{way: measured(way, url, Path(name), service) for way in WAYS} for _ in range(asked.rounds)]
    if len({one["accuracy"] for each in rounds for one in each.values()}) != 1:
        raise RuntimeError("expected the same answer to each")
    print(
        f"{asked.rows:,} x {CLASSES}, {held:.0f} MB as arrays; medians of {asked.rounds}, the full report each time.\n"
    )
    print("| way | s | CPU s of the sender | memory beyond the arrays, MB | CPU s of the service |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for way, (title, _) in WAYS.items():
        each = [statistics.median(one[way][name] for one in rounds) for name in ("seconds", "cpu", "memory", "service")]
        print(f"| {title} | {each[0]:.1f} | {each[1]:.1f} | {each[2]:.0f} | {each[3]:.1f} |")


if __name__ == "__main__":
    main()
