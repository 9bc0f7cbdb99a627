"""Fail for what no route and no command reaches: code of `app` that only tests call, or nothing does.

Two looks. Imports and names are followed from the entry points to every function, class and constant of a module, so
that a name used elsewhere for something else does not hide one. For attributes, methods and fields `vulture` says which
names nothing in `app` mentions. What a framework uses by name stands in `unreached.toml`, each with its reason.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

from vulture.core import Vulture

ROOT: Final = Path(__file__).resolve().parent.parent
ALLOWED: Final = ROOT / "scripts" / "unreached.toml"
# Where requests and commands come in; migrations run by themselves.
ENTRIES: Final = ("app.main", "app.cli", "app.serving", "app.inside", "app.__main__")
MIGRATIONS: Final = "alembic"
# A function with such a decorator is registered where it stands: cards of metrics (each family makes a decorator of its
# own from `metric`), figures, routes, and what pydantic asks.
REGISTERED: Final = ("@_*", "@figure", "@router.*", "@*_validator")
# Here a card may also be the value of a name, made by such a function.
FAMILIES: Final = "app.kernel.metrics.families."

Symbol = tuple[str, str]
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True, slots=True)
class Found:
    """Something that nothing reaches."""

    path: str
    line: int
    kind: str
    name: str


class Module:
    """What one file defines, imports and does when it is imported."""

    def __init__(self, name: str, path: Path, known: Mapping[str, Path]) -> None:
        self.name, self.path = name, path
        self.definitions: dict[str, Definition] = {}
        self.imported: dict[str, Symbol] = {}
        self.registered: list[str] = []
        self.statements: list[ast.stmt] = []
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for one in node.names:
                    module = f"{node.module}.{one.name}"
                    if module in known or node.module in known:
                        here = (module, "") if module in known else (node.module, one.name)
                        self.imported[one.asname or one.name] = here
            elif isinstance(node, ast.Import):
                self.imported |= {one.asname or one.name: (one.name, "") for one in node.names if one.name in known}
        for statement in tree.body:
            names = list(_names(statement))
            self.definitions |= dict.fromkeys(names, statement)  # type: ignore[arg-type]
            if not names:
                self.statements.append(statement)
            elif _is_registered(statement) or (name.startswith(FAMILIES) and _is_made(statement)):
                self.registered += names

    def leads_to(self, name: str) -> Iterator[Symbol]:
        """What a name of this module uses; without a name, what importing the module does."""
        yield self.name, ""
        if name in self.definitions:
            yield from self.mentioned(self.definitions[name])
        elif name in self.imported:
            yield self.imported[name]
        elif not name:
            yield from ((module, "") for module, _ in self.imported.values())
            yield from ((self.name, registered) for registered in self.registered)
            for statement in self.statements:
                yield from self.mentioned(statement)

    def mentioned(self, node: ast.AST) -> Iterator[Symbol]:
        """Symbols of `app` that a piece of this module names."""
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                yield from self._named(part.id)
            elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                # A type that is named before it is defined.
                yield from self._named(part.value)
            elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                module, name = self.imported.get(part.value.id, ("", "?"))
                if not name:
                    yield module, part.attr

    def _named(self, name: str) -> Iterator[Symbol]:
        if name in self.definitions:
            yield self.name, name
        if name in self.imported:
            yield self.imported[name]


def _names(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
            if isinstance(target, ast.Name | ast.Tuple):
                yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def _is_registered(statement: ast.stmt) -> bool:
    decorators = getattr(statement, "decorator_list", ())
    names = [f"@{ast.unparse(one).partition('(')[0]}" for one in decorators]
    return any(fnmatch(name, pattern) for name in names for pattern in REGISTERED)


def _is_made(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and ast.unparse(statement.value).startswith(("_", "formula("))


def read_modules(root: Path) -> dict[str, Module]:
    """Every file of `app` by the name it is imported by."""
    paths = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted((root / "app").rglob("*.py"))
    }
    return {name: Module(name, path, paths) for name, path in paths.items()}


def find_symbols(root: Path) -> Iterator[Found]:
    """Functions, classes and constants of modules that the entry points do not lead to."""
    modules = read_modules(root)
    waiting: list[Symbol] = []
    for entry in ENTRIES:
        if entry in modules:
            waiting += [(entry, ""), *((entry, name) for name in modules[entry].definitions)]
    paths = {name: module.path for name, module in modules.items()}
    for path in sorted((root / MIGRATIONS).rglob("*.py")):
        waiting += Module(path.stem, path, paths).imported.values()
    reached: set[Symbol] = set()
    while waiting:
        symbol = waiting.pop()
        if symbol not in reached and symbol[0] in modules:
            reached.add(symbol)
            waiting += modules[symbol[0]].leads_to(symbol[1])
    for module in modules.values():
        for name, node in module.definitions.items():
            if (module.name, name) not in reached and not name.startswith("__"):
                yield Found(module.path.relative_to(root).as_posix(), node.lineno, "symbol", name)


def find_names(root: Path) -> Iterator[Found]:
    """What vulture finds: names that are written down once and never mentioned, but for those that Python calls."""
    look = Vulture(ignore_decorators=list(REGISTERED))
    look.scavenge([str(root / "app")])
    for item in look.get_unused_code():
        if item.name.startswith("__"):
            continue
        yield Found(Path(item.filename).relative_to(root).as_posix(), item.first_lineno, item.typ, item.name)


def _allows(entry: Mapping[str, Any], found: Found) -> bool:
    return (
        fnmatch(found.path, entry["in"])
        and found.kind in entry.get("kinds", (found.kind,))
        and found.name in entry.get("names", (found.name,))
    )


def problems(root: Path = ROOT, entries: Sequence[Mapping[str, Any]] | None = None) -> Iterator[str]:
    """What nothing reaches and no entry allows, and entries that allow nothing; a sentence each."""
    if entries is None:
        entries = tomllib.loads(ALLOWED.read_text())["allowed"]
    # A name that both looks find is told once.
    found = {(one.path, one.name): one for one in (*find_names(root), *find_symbols(root))}.values()
    for one in sorted(found, key=lambda one: (one.path, one.line)):
        if not any(_allows(entry, one) for entry in entries):
            yield f"{one.path}:{one.line}: nothing reaches {one.name}"
    for entry in entries:
        for name in entry.get("names", [None]):
            alone = entry if name is None else {**entry, "names": [name]}
            if not any(_allows(alone, one) for one in found):
                what = "anything" if name is None else name
                yield f"{ALLOWED.name}: {what} in {entry['in']} needs no entry any more: {entry['reason']}"


def main() -> int:
    """Print what is found; returns the exit code."""
    found = list(problems())
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
