"""When tests of counts of samples in groups are made: always of few, of many where they are asked for."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.domain.errors import OutOfReach
from app.services.compare import pairs


def test_many_samples_are_tested_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    joint = SimpleNamespace(grouping=object(), weights=None, counts=np.ones(1000))
    compared: Any = SimpleNamespace(
        runs=SimpleNamespace(pairing=SimpleNamespace(joint=joint), n_classes=2), pairs=[(0, 1)]
    )
    assert pairs.tests_counts(compared, asked=None)
    assert not pairs.tests_counts(compared, asked=False)
    monkeypatch.setattr(pairs, "_MOST_SAMPLES_UNASKED", 1999)
    assert not pairs.tests_counts(compared, asked=None)
    assert pairs.tests_counts(compared, asked=True)
    monkeypatch.setattr(pairs, "_MOST_SAMPLES", 1999)
    with pytest.raises(OutOfReach, match="take too long"):
        pairs.tests_counts(compared, asked=True)
    # Without weights and groups those that say the same are one.
    joint.grouping = None
    assert pairs.tests_counts(compared, asked=None)
