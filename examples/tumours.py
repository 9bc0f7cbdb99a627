"""Two files of predictions for docs/tutorial.md: the same 2,000 samples by two models, of which one misses class D."""

import csv
from collections.abc import Sequence
from pathlib import Path

LABELS = "ABCD"
# Rows actual, columns predicted. Samples are numbered row by row, so that both models see the same ones.
MODELS = {
    "tumor-rf-7": [[800, 0, 0, 0], [0, 600, 0, 0], [0, 0, 500, 0], [40, 24, 20, 16]],
    "tumor-rf-8": [[780, 10, 6, 4], [8, 584, 4, 4], [5, 5, 486, 4], [3, 3, 3, 91]],
}


def write(path: Path, matrix: Sequence[Sequence[int]]) -> None:
    """The samples of a confusion matrix as CSV, one per line."""
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["sample_id", "y_true", "y_pred"])
        number = 0
        for actual, row in zip(LABELS, matrix, strict=True):
            for predicted, count in zip(LABELS, row, strict=True):
                for _ in range(count):
                    lines.writerow([number, actual, predicted])
                    number += 1


def main(folder: Path) -> None:
    """Write the files into a folder."""
    for name, matrix in MODELS.items():
        write(folder / f"{name}.csv", matrix)


if __name__ == "__main__":
    main(Path.cwd())
