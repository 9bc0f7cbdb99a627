"""Parts of an input folded each apart, and merged in any order."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from app.api.bodies.referenced import NamedRows
from tests.services.named_data import with_columns


def merged(whole: Any, made: Callable[[], Any], text: bytes, parts: NamedRows, random: np.random.Generator) -> None:
    """Take all parts into a fold, each from a state of its own."""
    found = [*parts.parts()]
    for place in random.permutation(len(found)).tolist():
        state = made()
        state.add(with_columns(text, found[place]))
        whole.merge(pickle.loads(pickle.dumps(state)))  # noqa: S301 - its own
