"""What compute processes find done: imported once by the process that all of them are forked from.

`app.wiring` names it. Whatever is built at first use is built here, once for all.
"""

import numpy as np

# The routes hold the functions that are sent to compute processes.
import app.main as routes
from app.api.documents.evaluation import evaluation_document
from app.api.plots.registry import as_answered
from app.api.report import view
from app.api.ui.writing import Web, write
from app.domain.inputs.classified import Probabilities, Scores
from app.domain.options import Options
from app.services.evaluate.answers import Evaluation
from app.services.evaluate.reports import evaluate, warm_up

__all__ = ["routes"]


def _probabilities(n_classes: int) -> None:
    codes = np.arange(4 * n_classes) % n_classes
    shares = np.full((len(codes), n_classes), 0.5 / n_classes)
    shares[np.arange(len(codes)), codes[::-1]] += 0.5
    evaluate(Probabilities(y_true=codes, probabilities=shares).read("/input"), Options())


def _page() -> None:
    """The first page of a process would wait for its templates to be compiled."""
    scores = np.array([0.1, 0.4, 0.5, 0.9])
    report = evaluate(Scores(y_true=np.array([0, 1, 0, 1]), scores=scores).read("/input"), Options())
    nowhere = Web(up="", here="", current="", signed_in=False, version="")
    write("document.html", nowhere, **view(evaluation_document(as_answered(Evaluation(report=report)))))


warm_up()
_probabilities(2)
_probabilities(3)
_page()
