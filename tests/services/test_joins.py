"""Numbers in place of names of groups."""

import numpy as np

from app.services.runs.joins import numbers_of


def test_a_number_does_not_depend_on_the_column() -> None:
    alone = [numbers_of(np.array([text]))[0] for text in ("a", "bcd", "é" * 40, "", "007", "x" * 256)]
    together = numbers_of(np.array(["a", "bcd", "é" * 40, "", "007", "x" * 256]))
    assert together.tolist() == alone
    assert len(set(alone)) == 6
    assert numbers_of(np.array(["12", "-5"])).tolist() == numbers_of(np.array([12, -5])).tolist()
    spread = np.bincount((numbers_of(np.arange(100_000)) % np.uint64(100)).astype(np.int64))
    assert spread.min() > 800
    assert spread.max() < 1200
