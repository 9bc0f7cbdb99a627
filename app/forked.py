"""Imports and first uses that compute processes share: made once in the process that all of them are forked from.

`app.services.processes.worker` names it. Whatever is built at first use is built here, once for all.
"""

import os

from app.services.processes.worker import BLAS_THREADS

# Threads within an operation of numpy wait for each other in a loop: beside other work it takes five times as long.
os.environ.setdefault(BLAS_THREADS, "1")

import numpy as np

# The routes hold the functions that are sent to compute processes.
import app.main as routes
from app.domain.inputs.classified import Probabilities
from app.domain.options import Options
from app.services.evaluate.reports import evaluate, warm_up

__all__ = ["routes"]


def _probabilities(n_classes: int) -> None:
    codes = np.arange(4 * n_classes) % n_classes
    shares = np.full((len(codes), n_classes), 0.5 / n_classes)
    # One of them is taken for another class. More would bring in what looks for another order of the columns.
    shares[np.arange(len(codes)), [*codes[:-1], 0]] += 0.5
    evaluate(Probabilities(y_true=codes, probabilities=shares).read("/input"), Options())


warm_up()
_probabilities(2)
_probabilities(3)
