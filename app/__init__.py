"""Prevail: evaluation as a service."""

import os
from pathlib import Path

# Before anything imports Arrow, whose own allocator reserves a gigabyte of addresses at its first use: the limit on the
# memory of compute processes counts these, so that after a file of Arrow the next body had a third of it.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")

_HERE = Path(__file__).resolve().parent
# A clone and the image have them beside the package, a wheel inside it (setup.py): beside it is the library `alembic`.
_PLACES = (_HERE.parent, _HERE / "migrations")
MIGRATIONS = next((one for one in _PLACES if (one / "alembic.ini").exists()), _HERE.parent) / "alembic"
