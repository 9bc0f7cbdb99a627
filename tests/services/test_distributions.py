"""Histograms of scores, which may lie anywhere."""

import numpy as np
import pytest

from app.domain.inputs.classified import Scores
from app.services.decide.distributions import histogram_of


@pytest.mark.parametrize("scores", [[-1e308, 1e308], [1.0, 1.0 + 2.0**-52], [1e308, 1e308], [0.25, 0.5]])
def test_every_score_is_in_a_bin(scores: list[float]) -> None:
    found = histogram_of(Scores(y_true=[0, 1, 1], scores=[*scores, scores[0]]).read("/input"), 1, 40)
    assert np.isfinite(found.edges).all()
    assert (np.diff(found.edges) > 0).all()
    assert (found.inside.sum(), found.outside.sum()) == (1.0, 1.0)
    assert found.inside.size == found.edges.size - 1
