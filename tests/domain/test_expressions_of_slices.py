"""Brackets behind expressions, and functions over the slices of an attribute."""

import pytest

from app.domain.errors import InvalidExpression
from app.domain.expressions.conditions import Condition, read_slice
from app.domain.expressions.expressions import parse, render
from app.domain.slices import refuse_unknown_slices
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import Combination, Expression, Measure, OverSlices, Sliced, bounds, is_list
from app.services.estimands import Better, preference
from tests.bank import each
from tests.services.slicing import LABELS, clinic


def of(text: str) -> Expression:
    return parse(text, LABELS, 1, inputs=frozenset(Inputs), sliceable=True)


def refusal(text: str, *, sliceable: bool = True) -> InvalidExpression:
    with pytest.raises(InvalidExpression) as caught:
        parse(text, LABELS, 1, sliceable=sliceable)
    return caught.value


def test_brackets_hold_conditions_of_the_whole_behind_which_they_stand() -> None:
    found = of('gps(recall@*, precision@D)[site="B", age<50]')
    assert isinstance(found, Sliced)
    assert isinstance(found.part, Combination)
    assert found.where == (Condition("site", "=", ("B",)), Condition("age", "<", (50,)))
    assert of('(recall@D[site="B"])[age < 50]') == of('recall@D[site="B",age<50]')
    assert of('PPV[sex in ("f", null)]') == of('precision@D[sex in ("f", null)]')


@each(
    "names",
    [
        ("demographic_parity_difference(by=sex)", "range(predicted_prevalence, by=sex)"),
        ("statistical_parity_difference(by=sex)", "range(predicted_prevalence, by=sex)"),
        ("disparate_impact(by=sex)", "ratio(predicted_prevalence, by=sex)"),
        ("equal_opportunity_difference(by=sex)@D[age<50]", "range(recall@D, by=sex)[age<50]"),
        ("equal_opportunity_ratio(by=sex, minimum_samples=50)", "ratio(recall, by=sex, minimum_samples=50)"),
        (
            "equalized_odds_difference(by=sex)@D[age<50]",
            "max(range(recall@D, by=sex), range(fpr@D, by=sex))[age<50]",
        ),
        ("equalized_odds_ratio(by=sex)", "min(ratio(recall, by=sex), ratio(fpr, by=sex))"),
        ("equalized_odds_difference(by=sex, agg=worst_case)", "max(range(recall, by=sex), range(fpr, by=sex))"),
        (
            "equalized_odds_difference(by=sex, agg=mean)@D[age<50]",
            "mean(range(recall@D, by=sex), range(fpr@D, by=sex))[age<50]",
        ),
        ('equalized_odds_ratio(agg="mean", by=sex)', "mean(ratio(recall, by=sex), ratio(fpr, by=sex))"),
        ("average_odds_difference(by=sex, minimum_samples=5)", "range(mean(recall, fpr), by=sex, minimum_samples=5)"),
        ("average_abs_odds_difference(by=sex)@D", "mean(range(recall@D, by=sex), range(fpr@D, by=sex))"),
        ("treatment_equality_ratio(by=sex)", "ratio(fn_per_fp, by=sex)"),
        ("false_positive_rate_difference(by=sex)", "range(fpr, by=sex)"),
        ("overall_accuracy_equality_difference(by=sex)", "range(accuracy, by=sex)"),
        ("predictive_parity_ratio(by=sex)", "ratio(precision, by=sex)"),
        ("accuracy_score_difference(by=sex)", "range(accuracy, by=sex)"),
        ("precision_score_ratio(by=sex)", "ratio(precision, by=sex)"),
    ],
)
def test_criteria_of_fairness_have_their_names(names: tuple[str, str]) -> None:
    theirs, ours = names
    assert of(theirs) == of(ours)


def test_names_of_fairness_take_an_attribute() -> None:
    for text, words in (
        ("demographic_parity_difference", "write demographic_parity_difference(by=<attribute>)"),
        (
            "equalized_odds_ratio(minimum_samples=5)",
            "equalized_odds_ratio is over slices: write equalized_odds_ratio(by=",
        ),
        ("equalized_odds(by=sex)", "equalized_odds_difference(by=<attribute>) or equalized_odds_ratio(by=<attribute>)"),
        ("recall_ratio", "recall_ratio(by=<attribute>)"),
        ("odds_ratio_ratio(by=sex)", "there is no metric or function"),
    ):
        assert words in refusal(text).detail


def test_over_slices_a_function_has_one_part_an_attribute_and_a_size() -> None:
    found = of("min(recall@D[age<50], by=site, minimum_samples=5)[sex=null]")
    assert isinstance(found, Sliced)
    assert isinstance(found.part, OverSlices)
    assert (found.part.function, found.part.by, found.part.fewest) == ("min", "site", 5)
    assert isinstance(found.part.part, Sliced)
    plain = of('range(recall, by="my site")')
    assert isinstance(plain, OverSlices)
    assert (plain.by, plain.fewest) == ("my site", 30)


@each(
    "text",
    [
        'recall@D[site="B"]',
        'recall@*[age<50, sex!="f"]',
        "h_mean[site=null]",
        'f_beta(beta=2)@D["my site" in ("A", "B", 3, true)]',
        'min(mean(recall@healthy, precision@D), by="a b", minimum_samples=7)[x>=-1.5]',
        "ratio(recall@D, by=site)",
        "range(min(recall@*), by=site)",
        "max(roc_auc@D, by=site)",
        "max(range(recall@D, by=sex), range(fpr@D, by=sex))[age<50]",
        'wmean(mean(recall@D, by=sex), recall@D[site="B"], weights="3,1")',
    ],
)
def test_the_canonical_text_is_read_as_the_same(text: str) -> None:
    assert render(of(text), LABELS) == text
    assert of(render(of(text), LABELS)) == of(text)


def test_facts_follow_from_the_metric_inside() -> None:
    assert bounds(of("min(mcc, by=site)")) == bounds(of("mcc")) == (-1.0, 1.0)
    assert bounds(of("range(mcc, by=site)")) == (0.0, None)
    assert bounds(of("ratio(recall, by=site)")) == (0.0, 1.0)
    assert bounds(of("mean(mcc, by=site)")) == (-1.0, 1.0)
    assert is_list(of("recall@*[age<50]"))
    directions = {text: preference(of(text)) for text in ("recall[age<50]", "max(fpr, by=x)", "range(recall, by=x)")}
    assert [one and one.better for one in directions.values()] == [Better.HIGHER, Better.LOWER, Better.LOWER]
    odds = preference(of("average_odds_difference(by=x)")), preference(of("equalized_odds_ratio(by=x, agg=mean)"))
    assert [one and one.better for one in odds] == [Better.LOWER, Better.HIGHER]


@each(
    ("text", "words"),
    [
        ('gps(recall[site="B"], recall)', "gps takes values of the same samples: the brackets stand behind it"),
        ("range(recall[age<5], recall[age>5])", "range takes values of the same samples"),
        ("min(recall@*, by=site)", "min over slices takes one value of each slice"),
        ("min(recall, precision, by=site)", "min over slices takes one value of each slice"),
        ("wmean(recall, by=site)", "wmean takes no by; mean, min, max, range, ratio do"),
        ("mean(recall, weights=3)", "mean takes no weights; wmean does"),
        ("equalized_odds_ratio(by=site, agg=best)", "agg of equalized_odds_ratio is worst_case or mean, once"),
        ("recall_difference(by=site, agg=mean)", "range takes metrics, by and minimum_samples, and no parameter 'agg'"),
        ("average_odds_difference", "write average_odds_difference(by=<attribute>)"),
        ("average_odds_ratio(by=site)", "there is no metric or function"),
        ("min(recall, minimum_samples=3)", "minimum_samples is about slices"),
        ("min(recall, by=site, minimum_samples=0)", "minimum_samples of min is a whole number from 1, not '0'"),
        ("range(recall, where=site)", "range takes metrics, by and minimum_samples, and no parameter 'where'"),
        ("ratio(mcc, by=site)", "ratio cannot take mcc: its values go as low as -1, and a ratio of mixed signs"),
        ("recall[]", "at character 8, got ']'"),
        ("recall[site]", "at character 12, got ']'"),
        ("recall[site=B]", 'expected a number, true, false, null or a text in quotes, got B; did you mean "B"?'),
        ("min(by=site)", "min needs at least one metric"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(text: str, words: str) -> None:
    assert words in refusal(text).detail


def test_where_slices_are_not_known_brackets_are_refused() -> None:
    for text in ('recall[site="B"]', "min(recall, by=site)"):
        assert "values of slices are not known here" in refusal(text, sliceable=False).detail


def test_brackets_without_a_condition_belong_to_a_label() -> None:
    labels = ("a[1]", "[b", "[x=1]", "c")
    for text in (
        "recall@a[1]",
        'recall@"[b"',
        'recall@"[x=1]"',
        "recall@a[1][x=1]",
        "recall@c[x=1]",
        'recall@"[b"[x=1]',
    ):
        found = parse(text, labels, None, sliceable=True)
        assert render(found, labels) == text
        assert isinstance(found, Sliced) is text.endswith("[x=1]")


@each(
    ("text", "words"),
    [
        ('recall[sit="B"]', "expected one of the attributes 'site', 'sex', 'age', got 'sit'; did you mean 'site'?"),
        ("min(recall, by=sit)", "got 'sit'; did you mean 'site'?"),
        ('min(recall, by=sit)[site="A"]', "got 'sit'; did you mean 'site'?"),
        ('recall[site="X"]', 'expected a value of site, which are "A", "B", "C", "F"; got "X"'),
        ("recall[site<5]", "expected numbers on both sides of <"),
    ],
)
def test_slices_that_the_samples_do_not_have_are_named(text: str, words: str) -> None:
    with pytest.raises(InvalidExpression, match="expected") as caught:
        refuse_unknown_slices(of(text), clinic(200))
    assert words in caught.value.detail


def test_a_slice_is_the_same_in_an_address_and_in_brackets() -> None:
    text = 'site in ("A", "B"), age>=30'
    found = of(f"recall[{text}]")
    assert isinstance(found, Sliced)
    assert isinstance(found.part, Measure)
    assert found.where == read_slice(text)
