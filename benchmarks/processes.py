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


def tree_seconds(root: int) -> float:
    """User and system time of a process, its descendants, and those of them that ended and were waited for."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))) is not None:
            parents[int(entry.name)] = int(fields[1])
            used[int(entry.name)] = sum(map(int, fields[11:15]))
    members = {root}
    while more := {pid for pid, parent in parents.items() if parent in members} - members:
        members |= more
    return sum(used.get(pid, 0) for pid in members) / _TICK


def busy_seconds() -> float:
    """Processor time that anything on this machine has used since its start."""
    fields = Path("/proc/stat").read_text().partition("\n")[0].split()[1:]
    user, nice, system, _, _, irq, softirq, steal = map(int, fields[:8])
    return (user + nice + system + irq + softirq + steal) / _TICK
