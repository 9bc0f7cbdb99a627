"""Run the benchmarks and write what they found into RESULTS.md: `python -m benchmarks [--full] [name ...]`.

Every benchmark is a module of its own that prints Markdown; its output becomes its section. Sections of benchmarks that
were not run stay as they are. Without names all run, smaller than with `--full`.
"""

import argparse
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
ONCE = """# Measured once

Linux x86_64, 2 cores, 24 GiB, Python 3.11.7, numpy 2.4.6 as far as it is known; each section says when, by which script
and on which processor. Most scripts are not kept. Of several settings there are the least, the median and the most.
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


BENCHMARKS = (
    Benchmark("kernel", "Metrics in process", ("numpy", "pycm", "scikit-learn", "ranx", "numba")),
    Benchmark("probability", "Probability metrics in process", ("numpy", "scipy", "scikit-learn")),
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
        "scale",
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
        "coverage", "Intervals of reports", ("numpy", "scipy"), ("--replicates", "100"), ("--replicates", "2000")
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run benchmarks, update RESULTS.md.")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(benchmark.name for benchmark in BENCHMARKS)}")
    parser.add_argument("--full", action="store_true", help="larger inputs and more rounds")
    chosen = parser.parse_args(arguments)
    unknown = set(chosen.names) - {benchmark.name for benchmark in BENCHMARKS}
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    failed = []
    for benchmark in BENCHMARKS:
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
    environment = os.environ | (KEPT_MEMORY if "--replicates" in arguments else {})
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    print(done.stdout, flush=True)
    return done.stdout.strip() if done.returncode == 0 else None


def write_section(benchmark: Benchmark, output: str, command: str) -> None:
    """Put the section in its place; the others stay."""
    _, *parts = _SECTION.split(RESULTS.read_text().replace(ONCE, "") if RESULTS.exists() else "")
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    about = f"`{command}`, {datetime.now(UTC):%Y-%m-%d}, {machine()}; {versions(benchmark.packages)}."
    sections[benchmark.name] = f"## {benchmark.title}\n\n{about}\n\n{output}\n"
    known = [one.name for one in BENCHMARKS if one.name in sections]
    once = [name for name in sections if name not in known]
    again, rest = ("\n".join(f"<!-- {name} -->\n{sections[name].strip()}\n" for name in some) for some in (known, once))
    RESULTS.write_text(f"{INTRODUCTION}\n{again}\n{ONCE}\n{rest}")


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
