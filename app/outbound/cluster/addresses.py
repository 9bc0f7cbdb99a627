"""Addresses of clusters. Settings read this, so it is light."""

import re
from importlib.util import find_spec
from typing import Final

# In place of an address: a cluster that is there for one job.
LOCAL: Final = "local"
_SCHEDULER: Final = re.compile(r"(tcp|tls)://[^\s/@]+:\d{1,5}")


def check_address(address: str) -> str:
    """An address of a scheduler.

    Raises:
        ValueError: it is none, or the library that speaks to it is not there.
    """
    if address != LOCAL and not _SCHEDULER.fullmatch(address):
        raise ValueError("expected tcp://host:port or tls://host:port of a scheduler of Dask, or local")
    if find_spec("distributed") is None:
        raise ValueError('expected the extra dask, which is not installed: pip install "prevail-server[dask]"')
    return address
