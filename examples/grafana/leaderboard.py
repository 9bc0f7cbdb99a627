"""The leaderboard of a data set as text for Prometheus: `python leaderboard.py DATASET [METRIC]`."""

import sys
from collections.abc import Iterator, Mapping, Sequence

import prevail


def escaped(text: object) -> str:
    """A value of a label: names are data, and may have quotes in them."""
    return str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def labelled(labels: Mapping[str, object]) -> str:
    """Labels in braces."""
    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items()) + "}"


def lines(board: prevail.Leaderboard, dataset: str, metric: str) -> Iterator[str]:
    """A line for every number; what has no value has none."""
    yield "# HELP prevail_leaderboard Value of a metric of the latest evaluation of a model version, and its limits."
    yield "# TYPE prevail_leaderboard gauge"
    for item in board.items:
        model = {"model": item["model"]["name"], "version": item["model"].get("version") or ""}
        for bound in ("value", "low", "high"):
            if item.get(bound) is not None:
                labels = {"dataset": dataset, "metric": metric, **model, "bound": bound}
                yield f"prevail_leaderboard{labelled(labels)} {item[bound]!r}"


def main(arguments: Sequence[str]) -> None:
    """Print it."""
    dataset, metric = arguments[0], arguments[1] if len(arguments) > 1 else "h_mean"
    with prevail.Client() as client:
        print("\n".join(lines(client.leaderboard(dataset, metric), dataset, metric)))


if __name__ == "__main__":
    main(sys.argv[1:])
