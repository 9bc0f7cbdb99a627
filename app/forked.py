"""Imports and first uses that compute processes share: made once in the process that all of them are forked from.

`app.wiring` names it. Whatever is built at first use is built here, once for all.
"""

import os
import sys
from importlib.machinery import ModuleSpec

from app.services.processes.worker import BLAS_THREADS

# Threads within an operation of numpy wait for each other in a loop: beside other work it takes five times as long.
os.environ.setdefault(BLAS_THREADS, "1")

import numpy as np
import pyarrow as pa

# The routes hold the functions that are sent to compute processes.
import app.main as routes
from app.domain.inputs.classified import Probabilities
from app.domain.options import Options
from app.services.evaluate.reports import evaluate, warm_up

__all__ = ["routes"]


class _WithoutPandas:
    """Says that there is no pandas."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG004
        """Find nothing, and pandas not at all."""
        if name == "pandas":
            raise ModuleNotFoundError(name)
        return None


def _look_for_pandas() -> None:
    """Let pyarrow look for pandas, which it does once, and find none. Where it happens to be installed its import would
    take 25 MB and a fifth of a second, for what nothing here uses.
    """
    sys.meta_path.insert(0, _WithoutPandas)
    pa.array(np.zeros(1)).to_numpy()
    sys.meta_path.remove(_WithoutPandas)


def _probabilities(n_classes: int) -> None:
    codes = np.arange(4 * n_classes) % n_classes
    shares = np.full((len(codes), n_classes), 0.5 / n_classes)
    # One of them is taken for another class. More would bring in what looks for another order of the columns.
    shares[np.arange(len(codes)), [*codes[:-1], 0]] += 0.5
    evaluate(Probabilities(y_true=codes, probabilities=shares).read("/input"), Options())


_look_for_pandas()
warm_up()
_probabilities(2)
_probabilities(3)
