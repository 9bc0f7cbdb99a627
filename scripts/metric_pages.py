"""Write the pages of the metrics, `docs/metrics/`, from their cards, or with `--check` say whether they are fresh."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from app.domain.expressions.expressions import parse, render, write_value
from app.domain.expressions.parameters import describe
from app.kernel.metrics.card import (
    INPUTS_OF_CLASSES,
    AnyMetric,
    Card,
    Inputs,
    Orientation,
    Prevalence,
    Scope,
    Task,
)
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.families.combinations import COMBINATIONS
from app.kernel.metrics.references import REFERENCES

TARGET: Final = Path(__file__).resolve().parent.parent / "docs" / "metrics"
NOTICE: Final = "<!-- Written by `make docs` from the card in `{source}`: edit there. -->"

SCOPES: Final = {
    Scope.CLASS: "one class against the rest",
    Scope.OVERALL: "all classes together",
}
INPUTS: Final = {
    Inputs.MATRIX: "a confusion matrix",
    Inputs.PROBABILITIES: "predicted probabilities",
    Inputs.LABELS: "sets of labels",
    Inputs.LABEL_SCORES: "scores of labels",
    Inputs.CONTINGENCY: "a contingency table",
    Inputs.FEATURES: "points with features",
    Inputs.QUERIES: "queries",
    Inputs.OVERLAPS: "sizes of sets",
    Inputs.CLASS_OVERLAPS: "sizes of sets, by class",
    Inputs.DECISIONS: "a matrix of classes and decisions",
}
TASKS: Final = {
    Task.MULTILABEL: "labels of which a sample can have several",
    Task.CLUSTERING: "clusters",
}
ORIENTATIONS: Final = {
    Orientation.HIGHER: "higher is better",
    Orientation.LOWER: "lower is better",
    Orientation.NEAREST: "the nearer to the ideal the better",
    Orientation.DESCRIPTIVE: "describes, does not judge",
}
PREVALENCES: Final = {
    Prevalence.INSENSITIVE: "insensitive: the value stays when a class becomes more or less frequent",
    Prevalence.SENSITIVE: "sensitive: the value moves when a class becomes more or less frequent",
    Prevalence.INSENSITIVE_BINARY: "insensitive for two classes, sensitive for more",
}
SHORT_PREVALENCES: Final = {
    Prevalence.INSENSITIVE: "insensitive",
    Prevalence.SENSITIVE: "sensitive",
    Prevalence.INSENSITIVE_BINARY: "insensitive for K = 2",
}
PROPER: Final = {
    True: "yes: best on average for the true probabilities alone",
    False: "no: probabilities that are not the true ones can do better by it; read a proper one beside it",
    None: "does not apply: it looks at the order of the scores, or at calibration, alone",
}


def cell(text: str) -> str:
    """Text that does not break a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell(entry) for entry in line)} |" for line in lines)


def value_range(card: Card) -> str:
    """The range as an interval."""
    low, high = card.range
    return ("(-∞" if low is None else f"[{low:.4g}") + ", " + ("∞)" if high is None else f"{high:.4g}]")


def ideal(card: Card) -> str:
    """The best value; empty when there is none."""
    return "" if card.ideal is None else f"{card.ideal:.4g}"


def source(metric: AnyMetric) -> str:
    """The file that declares the metric."""
    return metric.compute.__module__.replace(".", "/") + ".py"


def page_name(metric: AnyMetric) -> str:
    """The file of its page; with what it takes where classes have another metric of that name."""
    taken = catalogue().by_name[metric.key] is not metric
    return f"{metric.key}.{metric.card.inputs}.md" if taken else f"{metric.key}.md"


def expression(card: Card) -> str:
    """How it is asked for."""
    if card.scope is Scope.OVERALL:
        return f"`{card.key}`"
    return f"`{card.key}@<label>`, `{card.key}@*` for every class"


def facts(card: Card) -> Iterator[tuple[str, str]]:
    """What holds of the metric, by name."""
    yield "of", SCOPES[card.scope]
    yield "computed from", INPUTS[card.inputs] + (" of counts" if card.needs_counts else "")
    also = [words for task, words in TASKS.items() if task in card.tasks]
    if also and card.inputs in INPUTS_OF_CLASSES:
        yield "also of", " and ".join(also)
    yield "range", value_range(card)
    if card.ideal is not None:
        yield "ideal", ideal(card)
    yield "orientation", ORIENTATIONS[card.orientation]
    yield "prevalence", PREVALENCES[card.prevalence]
    if card.inputs is Inputs.PROBABILITIES:
        yield "proper score", PROPER[card.inference.proper]
    yield "corrected for chance", "yes" if card.chance_corrected else "no"
    if card.symmetric:
        yield "symmetric", "yes: the same with actual and predicted exchanged"
    if card.ordered:
        yield "order of the classes", "matters: labels are taken from lowest to highest"
    yield "in an expression", expression(card)
    if card.aliases:
        yield "also called", ", ".join(f"`{alias}`" for alias in card.aliases)


def formula(card: Card) -> str:
    """The formula with its left side."""
    whole = card.formula if " = " in card.formula or not card.symbol else f"{card.symbol} = {card.formula}"
    return f"```math\n{whole}\n```"


def sections(card: Card) -> Iterator[tuple[str, str]]:
    """The parts of a page that only some metrics have, by heading."""
    if card.parameters:
        rows = [
            (f"`{parameter.name}`", f"`{write_value(parameter.default)}`", describe(parameter), parameter.description)
            for parameter in card.parameters
        ]
        yield "Parameters", table(("name", "default", "takes", "what it does"), rows)
    if card.undefined:
        rows_undefined = [(f"`{condition.code}`", condition.reason.format(label="*k*")) for condition in card.undefined]
        yield "When it has no value", table(("code", "reason"), rows_undefined)
    if card.elsewhere:
        rows_elsewhere = [
            (library, f"`{name}`", *([card.differs.get(library, "")] if card.differs else []))
            for library, name in card.elsewhere.items()
        ]
        yield "Elsewhere", table(("library", "name", *(["mind"] if card.differs else [])), rows_elsewhere)
    for scale in card.scales:
        bands = [("above" if upper is None else f"below {upper:g}", label) for upper, label in scale.bands]
        yield (
            f"Verbal scale `{scale.name}`",
            (f"A convention, not a statistic: {REFERENCES[scale.reference]}\n\n" + table(("value", "label"), bands)),
        )
    if card.references:
        yield "References", "\n".join(f"- {REFERENCES[reference]}" for reference in card.references)


def page(metric: AnyMetric) -> str:
    """The page of one metric."""
    card = metric.card
    parts = [
        # With the key, for which people search.
        f"# {card.name[:1].upper()}{card.name[1:]} ({card.key})",
        NOTICE.format(source=source(metric)),
        f"`{card.key}`" + (f", ${card.symbol}$" if card.symbol else ""),
        card.sentence,
        formula(card),
        table(("fact", "value"), list(facts(card))),
    ]
    parts += [f"## {heading}\n\n{text}" for heading, text in sections(card)]
    parts.append(f"Since {card.since}, revision {card.revision}. [All metrics](index.md)")
    return "\n\n".join(parts) + "\n"


def families(metrics: Sequence[AnyMetric]) -> Mapping[str, list[AnyMetric]]:
    """The metrics under the first sentence of the module that declares them, in the order of the catalogue."""
    found: dict[str, list[AnyMetric]] = {}
    for metric in metrics:
        text = sys.modules[metric.compute.__module__].__doc__ or ""
        heading = text.strip().splitlines()[0].rstrip(".:")
        found.setdefault(heading.partition(" (")[0].partition(": ")[0].partition(". ")[0], []).append(metric)
    return found


def index(metrics: Sequence[AnyMetric]) -> str:
    """The page that lists all."""
    parts = [
        "# Metrics",
        "<!-- Written by `make docs` from the cards in `app/kernel/metrics/families/`: edit there. -->",
        f"{len(metrics)} metrics. In formulas rows are the actual classes and columns the predicted ones: $n_{{ij}}$ "
        "samples of class $i$ were predicted as $j$, class $k$ has $P_k$ actual and $T_k$ predicted members, $n$ is "
        "the total and $K$ the number of classes. A value that does not exist is `null` with a code "
        "and a reason, never 0. "
        "Slips in the papers behind these definitions are listed in [errata](../reference/errata.md).",
    ]
    for heading, members in families(metrics).items():
        rows = [
            (
                f"[`{m.key}`]({page_name(m)})",
                m.card.name,
                "class" if m.card.scope is Scope.CLASS else "overall",
                SHORT_PREVALENCES[m.card.prevalence],
                value_range(m.card),
                ideal(m.card),
            )
            for m in members
        ]
        parts.append(f"## {heading}\n\n" + table(("key", "name", "scope", "prevalence", "range", "ideal"), rows))
    functions = [
        (f"`{card.key}(...)`", card.name, card.sentence, f"${card.formula}$") for card in COMBINATIONS.values()
    ]
    parts.append(
        "## Functions of metrics\n\nIn [expressions](../expressions.md), of parts $x_1 \\dots x_m$. Over the slices of "
        "an attribute they are criteria of [fairness](fairness.md).\n\n"
        + table(("function", "name", "sentence", "formula"), functions)
    )
    return "\n\n".join(parts) + "\n"


# Criteria of fairness: what is the same in all slices, and how they are called here, by Fairlearn and by AIF360.
FAIRNESS: Final = (
    (
        "demographic parity",
        "how many are said to be positive",
        ("demographic_parity", "statistical_parity", "selection_rate"),
        ("disparate_impact",),
    ),
    ("equal opportunity", "how many of the positive are found", ("equal_opportunity", "true_positive_rate"), ()),
    (
        "predictive equality",
        "how many of the negative are taken for positive",
        ("predictive_equality", "false_positive_rate"),
        (),
    ),
    (
        "equalised odds",
        "both; the larger gap counts, or their mean",
        ("equalized_odds",),
        (
            "equalized_odds_difference(agg=mean)",
            "equalized_odds_ratio(agg=mean)",
            "average_abs_odds_difference",
            "average_odds_difference",
        ),
    ),
    ("treatment equality", "how many are missed for each false alarm", ("treatment_equality",), ()),
    (
        "predictive parity",
        "how many of those said to be positive are",
        ("predictive_parity", "precision_score"),
        (),
    ),
    (
        "overall accuracy equality",
        "how many are judged rightly",
        ("overall_accuracy_equality", "accuracy_score"),
        (),
    ),
    (
        "calibration within groups",
        "what a probability means",
        ("expected_calibration_error",),
        ("calibration_slope_difference", "calibration_intercept_difference"),
    ),
)
EXCLUDED: Final = """## What excludes what

Not all can hold. Where the prevalence of the slices differs and the model errs:

- predictive parity excludes equalised odds, since precision follows from prevalence, recall and false alarms;
- calibration within groups excludes equal mean scores of both classes;
- demographic parity excludes equalised odds, unless the model says the same of both classes.

So decide first whose error costs most. Limits that hold 0 are no proof of fairness.

## References

- Berk, R., Heidari, H., Jabbari, S., Kearns, M., & Roth, A. (2021). Fairness in criminal justice risk assessments: the
  state of the art. Sociological Methods & Research, 50(1), 3-44. Of treatment equality.
- Chouldechova, A. (2017). Fair prediction with disparate impact: a study of bias in recidivism prediction instruments.
  Big Data, 5(2), 153-163.
- Hardt, M., Price, E., & Srebro, N. (2016). Equality of opportunity in supervised learning. Advances in Neural
  Information Processing Systems, 29. Of equal opportunity and equalised odds.
- Kleinberg, J., Mullainathan, S., & Raghavan, M. (2017). Inherent trade-offs in the fair determination of risk scores.
  Innovations in Theoretical Computer Science."""


def fairness() -> str:
    """The page of criteria of fairness: names of other libraries, and what the parser reads them as."""
    rows = []
    for criterion, same, compared, others in FAIRNESS:
        names = [*(f"{one}_{end}" for one in compared for end in ("difference", "ratio")), *others]
        asked = [f"{one[:-1]}, by=sex)" if one.endswith(")") else f"{one}(by=sex)" for one in names]
        read = [parse(one, ("0", "1"), 1, inputs=INPUTS_OF_CLASSES, sliceable=True) for one in asked]
        written = dict.fromkeys(render(one, ("0", "1")) for one in read)
        rows.append((criterion, same, *(", ".join(f"`{one}`" for one in each) for each in (written, names))))
    return (
        "\n\n".join(
            [
                "# Fairness",
                "<!-- Written by `make docs` from `scripts/metric_pages.py`: edit there. -->",
                "Criteria of fairness are differences or ratios of a value over [slices](../slices.md). They are "
                "written as expressions, or by the names that Fairlearn and AIF360 have for them, such as "
                "`demographic_parity_difference(by=sex)`. AIF360's differences are signed: the value of the "
                "unprivileged group less that of the privileged one. These are not, and of more than two slices they "
                "are those of the two that lie furthest apart. In its `average_odds_difference` gaps of opposite signs "
                "cancel, in `average_abs_odds_difference` they do not.",
                table(("criterion", "the same in all slices", "expression", "names"), rows),
                EXCLUDED,
            ]
        )
        + "\n"
    )


def pages() -> dict[str, str]:
    """All pages by file name."""
    metrics = catalogue().metrics
    by_name = {page_name(metric): page(metric) for metric in metrics}
    return {"index.md": index(metrics), "fairness.md": fairness()} | by_name


def stale(wanted: Mapping[str, str]) -> list[str]:
    """Names of files that are missing, differ, or belong to no metric."""
    there = {path.name: path.read_text(encoding="utf-8") for path in TARGET.glob("*.md")}
    return sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))


def write(wanted: Mapping[str, str]) -> None:
    """Write the pages and remove those of metrics that are gone."""
    TARGET.mkdir(parents=True, exist_ok=True)
    for name in stale(wanted):
        if name in wanted:
            (TARGET / name).write_text(wanted[name], encoding="utf-8")
        else:
            (TARGET / name).unlink()


def main() -> int:
    """Write or check the pages; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether the files are fresh")
    wanted = pages()
    if not parser.parse_args().check:
        write(wanted)
        return 0
    differing = stale(wanted)
    if differing:
        shown = ", ".join(differing[:5]) + (" …" if len(differing) > 5 else "")
        print(f"docs/metrics/ is not what the cards say ({shown}); run `make docs`", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
