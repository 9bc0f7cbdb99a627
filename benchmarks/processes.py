"""Processor time of processes, from /proc."""

import os
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the state on, or None when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def _tree(root: int, leave_out: str | None) -> dict[int, list[str]]:
    """Fields of a process and its descendants; without those of a program that is left out."""
    found: dict[int, list[str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))) is not None:
            found[int(entry.name)] = fields
    members = {root}
    while more := {pid for pid, fields in found.items() if int(fields[1]) in members} - members:
        members |= more
    return {pid: found[pid] for pid in members & found.keys() if leave_out is None or leave_out not in _command(pid)}


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def tree_seconds(root: int, leave_out: str | None = None) -> float:
    """User and system time of a process, its descendants, and those of them that ended and were waited for."""
    return sum(sum(map(int, fields[11:15])) for fields in _tree(root, leave_out).values()) / _TICK


def thread_nanoseconds(root: int) -> dict[str, int]:
    """Time on a processor of each living thread of a process and its descendants; finer than `tree_seconds`."""
    found: dict[str, int] = {}
    for pid in _tree(root, None):
        for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                found[thread.parent.name] = int(thread.read_text().split()[0])
            except OSError:
                continue
    return found


def tree_megabytes(root: int, leave_out: str | None = None) -> dict[str, float]:
    """Proportional set sizes of a process and its descendants: pages that n processes share count as an n-th each."""
    sizes: dict[str, float] = {}
    for pid in sorted(_tree(root, leave_out)):
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        kilobytes = next(line.split()[1] for line in rollup.splitlines() if line.startswith("Pss:"))
        sizes[f"{pid - root:+d}"] = int(kilobytes) / 1024
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def busy_seconds() -> float:
    """Processor time that anything on this machine has used since its start."""
    fields = Path("/proc/stat").read_text().partition("\n")[0].split()[1:]
    user, nice, system, _, _, irq, softirq, steal = map(int, fields[:8])
    return (user + nice + system + irq + softirq + steal) / _TICK
