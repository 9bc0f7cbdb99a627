"""What weak classes do to the harmonic mean of the recalls: Proposition 1 of Aguilar-Ruiz (2025)."""

from math import floor


def h_mean_upper_bound(*, classes: int, weak: int, weak_recall: float, max_recall: float) -> float:
    """Largest H when at least ``weak`` of K classes have recall <= ``weak_recall`` and none more than ``max_recall``.

    K / (m / tau + (K - m) / r_max), Proposition 1 (2); its limit 0 at tau = 0.
    """
    if weak_recall == 0 or max_recall == 0:
        return 0.0
    return classes / (weak / weak_recall + (classes - weak) / max_recall)


def critical_recall(*, classes: int, weak: int, max_recall: float, target: float) -> float | None:
    """Recall tau* of the weak classes below which H stays under ``target`` however good the others are, up to
    ``max_recall``.

    m / (K / target - (K - m) / r_max), Proposition 1 (2) solved for tau. None when the target is above ``max_recall``,
    which bounds H.
    """
    if target > max_recall:
        return None
    return weak / (classes / target - (classes - weak) / max_recall)


def rounded_down(value: float, decimals: int) -> float:
    """The value cut to so many decimals: a critical recall rounded up would claim too much (4/39 = 0.10256 is not
    0.103).
    """
    scale = 10.0**decimals
    steps = floor(value * scale)
    # The product may be rounded below a whole number that the value has reached: 0.29 * 100 < 29.
    return (steps + 1) / scale if (steps + 1) / scale <= value else steps / scale
