"""When tests of counts of samples in groups are made: always of few, of many where they are asked for."""

from types import SimpleNamespace
from typing import Any

import pytest

from app.domain.errors import OutOfReach
from app.services.compare import pairs


def test_many_samples_in_groups_are_tested_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = SimpleNamespace(pairing=SimpleNamespace(joint=object()), n_classes=2)
    groups = SimpleNamespace(n_samples=1000)
    compared: Any = SimpleNamespace(runs=runs, pairs=[(0, 1)], groups=groups)
    assert pairs.tests_counts(compared, asked=None)
    assert not pairs.tests_counts(compared, asked=False)
    monkeypatch.setattr(pairs, "_MOST_GROUPED_UNASKED", 1999)
    assert not pairs.tests_counts(compared, asked=None)
    assert pairs.tests_counts(compared, asked=True)
    monkeypatch.setattr(pairs, "_MOST_GROUPED", 1999)
    with pytest.raises(OutOfReach, match="take too long"):
        pairs.tests_counts(compared, asked=True)
    # Without groups nothing of it counts.
    compared.groups = None
    assert pairs.tests_counts(compared, asked=None)
