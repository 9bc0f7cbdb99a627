"""Record answers anew, or say what differs: `python -m tests.golden.record`; see `tests.golden`."""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from secrets import token_hex

from tests.conftest import Provider
from tests.golden.calls import Call, Json
from tests.golden.comparing import Difference, compare, report, summary
from tests.golden.playing import play, read_answers, served, write_answers
from tests.golden.requests import GROUPS, SETTINGS


def main() -> int:
    """The command; returns its exit code."""
    asked = _arguments()
    unknown = set(asked.groups) - GROUPS.keys()
    if unknown:
        print(f"no groups {', '.join(sorted(unknown))}; there are {', '.join(GROUPS)}", file=sys.stderr)
        return 2
    if asked.list:
        _list()
        return 0
    names = asked.groups or [name for name in GROUPS if any(_wanted(name, call, asked.only) for call in GROUPS[name])]
    if not names:
        print(f"no request is named like {asked.only}", file=sys.stderr)
        return 2
    different: dict[str, list[Difference]] = {}
    with _databases() as databases:
        for name in names:
            old, new = _answers(name, next(databases), asked.only)
            found = compare(old, new)
            different |= {f"{name}/{call}": each for call, each in found.items()}
            if not asked.diff:
                # What differs by rounding only stays as it was recorded.
                write_answers(name, {call: new[call] if call in found else old[call] for call in new})
                print(f"{name}: {len(new)} answers, {len(found)} of them other than before")
    if asked.diff and different:
        print(report(different, full=asked.full), "")
    if different:
        print("By path:", summary(different), sep="\n")
    print(f"{len(different)} requests are answered differently")
    return 1 if asked.diff and different else 0


def _answers(group: str, database_url: str, only: str | None) -> tuple[dict[str, Json], dict[str, Json]]:
    """What was recorded of a group, and what is to be recorded; of requests that are no more the answers go."""
    with served(database_url, **SETTINGS.get(group, {})) as url:
        recorded, now = read_answers(group), play(url, GROUPS[group])
    chosen = {call.name for call in GROUPS[group] if _wanted(group, call, only)}
    new = {call: now[call] if call in chosen else recorded[call] for call in now if call in chosen | recorded.keys()}
    return {call: recorded[call] for call in recorded if only is None or call in new}, new


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.golden.record", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="all when left out")
    parser.add_argument("--only", metavar="GLOB", help="only requests of such a name, or such a GROUP/name")
    parser.add_argument("--diff", action="store_true", help="record nothing, print what differs; exit code 1 if any")
    parser.add_argument("--full", action="store_true", help="with --diff: every difference, not one line per pattern")
    parser.add_argument("--list", action="store_true", help="print the groups and how many requests of each kind")
    return parser.parse_args()


def _wanted(group: str, call: Call, only: str | None) -> bool:
    return only is None or fnmatchcase(call.name, only) or fnmatchcase(f"{group}/{call.name}", only)


@contextmanager
def _databases() -> Iterator[Iterator[str]]:
    """URLs of empty databases of one server."""
    provider = Provider()
    try:
        template = provider.template()

        def made() -> Iterator[str]:
            while True:
                name = f"golden_{token_hex(8)}"
                template.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template.name}"')
                yield template.url(name)
                template.execute(f'DROP DATABASE "{name}" WITH (FORCE)')

        yield made()
    finally:
        provider.close()


def _list() -> None:
    kinds: Counter[str] = Counter()
    for name, calls in GROUPS.items():
        answers = read_answers(name)
        refused = sum(answers[call.name]["status"] >= 400 for call in calls if call.name in answers)
        print(f"{name}: {len(calls)} requests, {refused} of them refused")
        kinds.update(_kind(call, answers.get(call.name, {})) for call in calls)
    print("", *(f"{number:5} {kind}" for kind, number in kinds.most_common()), f"{kinds.total():5} in all", sep="\n")


def _kind(call: Call, answer: Json) -> str:
    path = re.sub(r"(\$|0190)[^/]+", "{}", call.path.partition("?")[0])
    path = re.sub(r"(gates|metrics|problems|curves)/(?!compute|recommendations)[^/]+", r"\1/{}", path)
    return f"{call.method} {path}" + (", refused" if answer.get("status", 0) >= 400 else "")


if __name__ == "__main__":
    sys.exit(main())
