"""Run the benchmarks and write what they found into RESULTS.md: `python -m benchmarks [--full] [name ...]`.

Every benchmark is a module of its own that prints Markdown; its output becomes its section. Sections of benchmarks that
were not run stay as they are. Without names all run, smaller than with `--full`.
"""

import argparse
import importlib.util
import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

RESULTS = Path(__file__).with_name("RESULTS.md")
INTRODUCTION = """# Measurements

Written by `make bench`: medians, peers measured in the same run on the same machine, one BLAS thread. Each section says
when and on what it was measured.
"""
# Simulations take and give back large arrays by the thousand: memory that stays with the process is not cleared by the
# system each time, which is up to 40 % of their time. 32 MiB is the most that the first of these may be.
KEPT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 25), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
_SECTION = re.compile(r"^<!-- (\w+) -->\n", re.MULTILINE)


@dataclass(frozen=True)
class Benchmark:
    """A module, its heading, the packages its numbers depend on, and its arguments for a usual and for a full run."""

    name: str
    title: str
    packages: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    full: tuple[str, ...] = ()

    @property
    def exists(self) -> bool:
        return importlib.util.find_spec(f"benchmarks.{self.name}") is not None


BENCHMARKS = (
    Benchmark("kernel", "Matrix metrics in process", ("numpy", "pycm", "scikit-learn")),
    Benchmark("probability", "Probability metrics in process", ("numpy", "scipy", "scikit-learn")),
    Benchmark("clustering", "Measures of clusterings in process", ("numpy", "scipy", "scikit-learn")),
    Benchmark("multilabel", "Labels against scikit-learn", ("numpy", "scikit-learn"), ("--rounds", "3")),
    Benchmark(
        "unit_coverage",
        "Limits of measures of labels and of rankings",
        ("numpy",),
        ("--replicates", "200"),
        ("--replicates", "2000"),
    ),
    Benchmark(
        "clustering_coverage",
        "Limits of measures of clusterings",
        ("numpy",),
        ("--replicates", "200"),
        ("--replicates", "2000"),
    ),
    Benchmark(
        "ingest",
        "Large probability matrices",
        ("fastapi", "numpy", "pyarrow", "pysimdjson", "scikit-learn"),
        full=("--large",),
    ),
    Benchmark(
        "uploads",
        "A million rows from Python",
        ("httpx", "pyarrow", "numpy", "fastapi"),
        ("--rounds", "1"),
        ("--rounds", "3"),
    ),
    Benchmark(
        "http",
        "Evaluations over HTTP",
        ("fastapi", "uvicorn", "uvloop", "asyncpg", "pydantic", "numpy"),
        ("--rounds", "3"),
        ("--rounds", "7"),
    ),
    Benchmark(
        "batches",
        "Batches beside one by one",
        ("fastapi", "uvicorn", "asyncpg"),
        ("--matrices", "2000"),
        ("--matrices", "10000"),
    ),
    Benchmark(
        "transfer",
        "A project exported, dropped and imported",
        ("asyncpg", "sqlalchemy", "pyarrow"),
        ("--rows", "5000"),
        ("--rows", "100000", "--samples-every", "100"),
    ),
    Benchmark(
        "observed",
        "What keys, logs and metrics cost",
        ("fastapi", "uvicorn", "prometheus-client"),
        ("--rounds", "4"),
        # Services take turns often, since a machine is not the same from one minute to the next.
        ("--rounds", "16", "--seconds", "2"),
    ),
    Benchmark(
        "million",
        "Lists and leaderboards",
        ("asyncpg", "sqlalchemy"),
        ("--rows", "200000"),
        ("--rows", "1000000"),
    ),
    Benchmark(
        "faults",
        "What is kept when something breaks",
        ("uvicorn", "asyncpg", "sqlalchemy"),
        ("--rounds", "2"),
        ("--rounds", "10"),
    ),
    Benchmark(
        "replicas",
        "Three services, two workers and a cluster, one of which is killed",
        ("uvicorn", "asyncpg", "procrastinate", "distributed"),
        ("--rows", "4000000"),
        ("--rows", "10000000", "--rounds", "3"),
    ),
    Benchmark(
        "partitions",
        "The table of evaluations in partitions",
        ("asyncpg", "sqlalchemy"),
        ("--rows", "200000"),
        ("--rows", "10000000"),
    ),
    Benchmark("soak", "Half an hour of mixed traffic", ("uvicorn", "httpx"), ("--minutes", "2"), ("--minutes", "30")),
    Benchmark("rankings", "Rankings of queries", ("numpy",)),
    Benchmark(
        "folds",
        "Probabilities folded from files",
        ("numpy", "pyarrow", "scikit-learn", "polars", "duckdb"),
        ("--rows", "10000000"),
        ("--rows", "100000000", "--passes", "10"),
    ),
    Benchmark(
        "cluster",
        "One reference on a cluster",
        ("numpy", "pyarrow", "distributed"),
        ("--rows", "20000000"),
        ("--rows", "100000000"),
    ),
    Benchmark("pairs", "Runs joined by sample id", ("numpy", "pyarrow"), (), ("--rows", "20000000", "--memory", "256")),
    Benchmark("answers", "Answers in every form", ("numpy", "orjson")),
    Benchmark("write_paths", "Ways to store an evaluation", ("asyncpg", "sqlalchemy")),
    Benchmark("comparison", "Intervals and paired comparisons", ("numpy", "scipy", "scikit-learn")),
    Benchmark("gates", "Gates that fail though their rules hold", ("numpy", "scipy")),
    Benchmark(
        "paired",
        "Paired differences with few discordant samples",
        ("numpy",),
        ("--replicates", "200"),
        ("--replicates", "2000"),
    ),
    Benchmark(
        "calibration",
        "Calibration errors: tests and intervals",
        ("numpy",),
        ("--replicates", "200"),
        ("--replicates", "2000"),
    ),
    Benchmark(
        "folded_coverage",
        "Limits of folded probabilities",
        ("numpy",),
        ("--replicates", "100"),
        ("--replicates", "500"),
    ),
    Benchmark(
        "paired_counts",
        "Tests of counts of paired runs",
        ("numpy", "scipy"),
        ("--replicates", "200"),
        ("--replicates", "2000"),
    ),
    Benchmark(
        "type_one",
        "Equal runs that tests tell apart",
        ("numpy", "scipy"),
        ("--replicates", "200"),
        ("--replicates", "2000"),
    ),
    Benchmark("families", "Many differences at once", ("numpy",), ("--replicates", "200"), ("--replicates", "2000")),
    Benchmark("prevalence", "Estimated class shares", ("numpy",), ("--replicates", "200"), ("--replicates", "2000")),
    Benchmark(
        "projections", "Intervals at other class shares", ("numpy",), ("--replicates", "100"), ("--replicates", "2000")
    ),
    Benchmark(
        "thresholds",
        "Thresholds under a constraint",
        ("numpy", "scipy"),
        ("--replicates", "200"),
        ("--replicates", "2000"),
    ),
    Benchmark(
        "curve_bands",
        "Bands around curves",
        ("numpy", "scipy"),
        ("--replicates", "100"),
        ("--replicates", "2000"),
    ),
    Benchmark("few_samples", "Few samples per class", ("numpy", "scipy")),
    Benchmark("weakest", "The weakest class", ("numpy",), ("--replicates", "200"), ("--replicates", "2000")),
    Benchmark(
        "operating_points",
        "A rate at a rate",
        ("numpy",),
        ("--replicates", "100"),
        ("--replicates", "2000"),
    ),
    Benchmark(
        "weighted_coverage",
        "Weighted samples",
        ("numpy",),
        ("--replicates", "200"),
        ("--replicates", "2000"),
    ),
    Benchmark("coverage", "Coverage of the intervals", ("numpy", "scipy"), ("--replicates", "300")),
    Benchmark("group_coverage", "Samples in groups", ("numpy",), ("--replicates", "100"), ("--replicates", "1000")),
    Benchmark(
        "probability_coverage",
        "Intervals of metrics of probabilities",
        ("numpy", "scipy"),
        ("--replicates", "50"),
        ("--replicates", "400"),
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    existing = [benchmark for benchmark in BENCHMARKS if benchmark.exists]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run benchmarks, update RESULTS.md.")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(benchmark.name for benchmark in existing)}")
    parser.add_argument("--full", action="store_true", help="larger inputs and more rounds")
    chosen = parser.parse_args(arguments)
    unknown = set(chosen.names) - {benchmark.name for benchmark in existing}
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    failed = []
    for benchmark in existing:
        if chosen.names and benchmark.name not in chosen.names:
            continue
        extra = benchmark.full if chosen.full else benchmark.arguments
        output = run(benchmark.name, extra)
        if output is None:
            failed.append(benchmark.name)
            continue
        write_section(benchmark, output, " ".join([f"python -m benchmarks.{benchmark.name}", *extra]))
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def run(name: str, arguments: Sequence[str]) -> str | None:
    """Markdown that a benchmark prints, or None when it fails."""
    print(f"== {name}", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"} | os.environ
    if "--replicates" in arguments:
        environment |= KEPT_MEMORY
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    print(done.stdout, flush=True)
    return done.stdout.strip() if done.returncode == 0 else None


def write_section(benchmark: Benchmark, output: str, command: str) -> None:
    """Put the section in its place; the others stay."""
    _, *parts = _SECTION.split(RESULTS.read_text() if RESULTS.exists() else "")
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    about = f"`{command}`, {datetime.now(UTC):%Y-%m-%d}, {machine()}; {versions(benchmark.packages)}."
    sections[benchmark.name] = f"## {benchmark.title}\n\n{about}\n\n{output}\n"
    known = [one.name for one in BENCHMARKS if one.name in sections]
    # What was measured by hand has a section too.
    order = [*known, *(name for name in sections if name not in known)]
    text = "\n".join(f"<!-- {name} -->\n{sections[name].strip()}\n" for name in order)
    RESULTS.write_text(f"{INTRODUCTION}\n{text}")


def machine() -> str:
    """Processor, cores and memory."""
    names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    model = names[0].strip() if names else platform.machine()
    return f"{os.cpu_count()} cores of {model}, {memory:.0f} GiB, {platform.system()} {platform.machine()}"


def versions(packages: Sequence[str]) -> str:
    """Python and the packages that are installed."""
    found = [f"Python {platform.python_version()}"]
    for package in packages:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


if __name__ == "__main__":
    sys.exit(main())
