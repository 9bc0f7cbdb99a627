"""Prevail: evaluation as a service."""

import os

# Before anything imports Arrow, whose own allocator reserves a gigabyte of addresses at its first use: the limit on the
# memory of compute processes counts these, so that after a file of Arrow the next body had a third of it.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
