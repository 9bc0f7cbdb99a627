"""Prevail: judge classifiers, compare them, and decide with a gate.

import prevail

pv = prevail.Client()                       # or prevail.local(), without a server
print(pv.evaluate(y_test, model.predict(X_test)))
"""

from prevail.client import AsyncClient, Client
from prevail.errors import (
    Conflict,
    Fault,
    GateFailed,
    GateInconclusive,
    InvalidInput,
    JobFailed,
    MissingPackage,
    NoAnswer,
    NotAllowed,
    NotFound,
    Overloaded,
    PrevailError,
    ServerFault,
    TooLarge,
    UndefinedValue,
)
from prevail.local import local, local_async
from prevail.results.decisions import Check, Comparison, Difference, Leaderboard, Tournament
from prevail.results.evaluation import Evaluation, Value
from prevail.results.listing import Facts, Figure, Listing
from prevail.scoring import scorer
from prevail.uploads.progress import Progress

__all__ = [
    "AsyncClient",
    "Check",
    "Client",
    "Comparison",
    "Conflict",
    "Difference",
    "Evaluation",
    "Facts",
    "Fault",
    "Figure",
    "GateFailed",
    "GateInconclusive",
    "InvalidInput",
    "JobFailed",
    "Leaderboard",
    "Listing",
    "MissingPackage",
    "NoAnswer",
    "NotAllowed",
    "NotFound",
    "Overloaded",
    "PrevailError",
    "Progress",
    "ServerFault",
    "TooLarge",
    "Tournament",
    "UndefinedValue",
    "Value",
    "local",
    "local_async",
    "scorer",
]
