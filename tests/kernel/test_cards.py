"""What is declared of the metrics beside their functions."""

import inspect
import math
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from app.kernel.metrics.card import AnyMetric, Choice, DecisionName, Inputs, Number, Orientation, Parameter, Scope, Task
from app.kernel.metrics.catalogue import Catalogue, catalogue
from app.kernel.metrics.families import rate_means
from app.kernel.metrics.references import REFERENCES
from tests.bank import each
from tests.kernel.closeness import value_of
from tests.kernel.kinds.registry import kind_of
from tests.kernel.matrices import matrices

ALL = catalogue().metrics
EACH = each("metric", ALL, ids=[metric.key for metric in ALL])


@EACH
def test_a_card_says_what_a_reader_needs(metric: AnyMetric) -> None:
    card = metric.card
    assert re.fullmatch(r"[a-z][a-z0-9_]*", card.key)
    assert card.name
    assert card.formula
    assert card.sentence.endswith(".")
    assert card.sentence[0].isupper()
    assert card.references
    assert set(card.references) <= REFERENCES.keys()
    assert {scale.reference for scale in card.scales} <= REFERENCES.keys()
    low, high = card.range
    assert low is None or high is None or low < high


@EACH
def test_names_are_plain(metric: AnyMetric) -> None:
    for name in metric.card.aliases:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name)


def test_a_name_belongs_to_one_metric() -> None:
    for task in Task:
        names = [name for metric in ALL if task in metric.card.tasks for name in (metric.key, *metric.card.aliases)]
        assert len(names) == len(set(names))
    with pytest.raises(ValueError, match="names both"):
        Catalogue([*ALL, ALL[0]])


def test_every_name_leads_to_its_metric() -> None:
    for metric in ALL:
        for name in (metric.key, *metric.card.aliases):
            assert all(catalogue().named(name, task) is metric for task in metric.card.tasks)
        assert catalogue().by_name[metric.key].key == metric.key
    by_scope = (*catalogue().of_scope(Scope.CLASS), *catalogue().of_scope(Scope.OVERALL))
    assert sorted(by_scope, key=id) == sorted(ALL, key=id)


def test_what_differs_elsewhere_is_said_of_libraries_that_are_named() -> None:
    found = {metric.key: metric.card.differs for metric in catalogue().metrics if metric.card.differs}
    for metric in catalogue().metrics:
        assert metric.card.differs.keys() <= metric.card.elsewhere.keys()
    assert found.keys() >= {
        "tversky_index", "top_k_accuracy", "expected_calibration_error", "classwise_calibration_error",
        "au_imcp_trapezoid",
    }  # fmt: skip


@EACH
def test_names_elsewhere_look_like_that_library(metric: AnyMetric) -> None:
    patterns = {
        "sklearn": r"[a-z0-9_]+(\([a-z_]+[a-z_=\"., A-Z]*\))?",
        "pycm": r"[A-Za-z0-9_ -]+( \(base 10\))?",
        "imblearn": r"[a-z_]+(\([a-z_]+=[A-Za-z]+\))?",
        "imcp": r"[a-z_]+",
        "pykeen": r"[a-z_]+",
        "ranx": r"[a-z0-9_-]+(@k)?",
        "gdeval": r"err@k",
        "hmeasure": r"H",
        "ir_measures": r"[A-Z][A-Za-z]+",
        "genieclust": r"[a-z_]+",
        "skimage": r"[a-z_]+",
        "trec_eval": r"[A-Za-z_]+",
        "torchmetrics": r"(1 - )?(Multiclass|Multilabel|Binary)?[A-Z][A-Za-z0-9]+(\([a-z_]+=[a-z0-9]+\))?",
    }
    for library, name in metric.card.elsewhere.items():
        assert re.fullmatch(patterns[library], name), name


def test_names_elsewhere_exist_there() -> None:
    import imblearn.metrics
    import sklearn.metrics

    for metric in ALL:
        for library, module in (("sklearn", sklearn.metrics), ("imblearn", imblearn.metrics)):
            if name := metric.card.elsewhere.get(library):
                assert hasattr(module, name.split("(")[0]), name


@EACH
def test_parameters_are_those_of_the_function(metric: AnyMetric) -> None:
    _, *arguments = inspect.signature(metric.compute).parameters.values()
    assert {argument.name: argument.default for argument in arguments} == metric.card.defaults
    for parameter in metric.card.parameters:
        assert parameter.description
        if isinstance(parameter, Choice):
            assert parameter.default in parameter.options
        elif isinstance(parameter, Number):
            assert parameter.minimum is None or parameter.default >= parameter.minimum
            assert parameter.maximum is None or parameter.default <= parameter.maximum
            assert parameter.above is None or parameter.default > parameter.above
            assert parameter.below is None or parameter.default < parameter.below


def values_to_try(parameter: Parameter) -> list[Any]:
    """The default, the ends where they are allowed, and something just inside where not."""
    if isinstance(parameter, DecisionName):
        return [parameter.default]
    if isinstance(parameter, Choice):
        return list(parameter.options)
    inside = parameter.below is None or parameter.below > 0.75
    values = [parameter.default, *([3.0 if parameter.integral else 0.75] if inside else [])]
    values += [end for end in (parameter.minimum, parameter.maximum) if end is not None]
    values += [end + 1e-9 for end in (parameter.above,) if end is not None]
    values += [end - 1e-9 for end in (parameter.below,) if end is not None]
    return values + ([math.inf, -math.inf] if parameter.infinite else [])


@EACH
def test_every_allowed_parameter_gives_a_value_in_range(metric: AnyMetric) -> None:
    kind = kind_of(metric)
    # With probabilities that are never 0 and no ties.
    example = matrices()["accurate-5-0"] if metric.card.inputs is Inputs.MATRIX else kind.cases(5)[0]
    low, high = metric.card.range
    for parameter in metric.card.parameters:
        for value in values_to_try(parameter):
            got = kind.values(metric, example, **{parameter.name: value})
            assert np.isfinite(got).all(), f"{parameter.name}={value}"
            assert low is None or (got >= low - 1e-12).all()
            assert high is None or (got <= high + 1e-12).all()


# Both of these have 1 in the denominator.
ALWAYS_DEFINED = {"chi_squared_df", "baulieu_v", "baulieu_vi"}


@EACH
def test_conditions_give_masks_of_the_right_shape(metric: AnyMetric) -> None:
    kind = kind_of(metric)
    batch, alone = kind.batches(3)[0]
    data = kind.data(batch)
    assert metric.card.undefined or metric.card.degree == 1 or metric.key in ALWAYS_DEFINED
    with np.errstate(all="ignore"):
        for condition in metric.card.undefined:
            mask = np.asarray(condition.holds(data))
            assert mask.dtype == np.bool_
            own = np.asarray(condition.holds(kind.data(alone[0])))
            assert own.shape in ((), (3,))
            assert mask.shape in ((len(alone), *own.shape), (3,))
            assert condition.reason
            assert re.fullmatch(r"[a-z_]+", condition.code)


def test_what_a_metric_takes_is_what_its_card_says() -> None:
    for metric in ALL:
        data, *_ = inspect.signature(metric.compute).parameters.values()
        if data.annotation in (inspect.Parameter.empty, Any):
            # Arithmetic on numbers of any kind.
            continue
        kind = kind_of(metric)
        assert data.annotation is type(kind.data(kind.cases(3)[0])), metric.key


def test_orientation_and_ideal_agree() -> None:
    for metric in ALL:
        if metric.card.orientation is Orientation.NEAREST:
            assert metric.card.ideal is not None
        if metric.card.orientation is Orientation.LOWER and metric.card.ideal is not None:
            assert metric.card.ideal == metric.card.range[0]


# Interpretation scales


def test_scales_rise_and_end_open() -> None:
    scales = {id(scale): scale for metric in ALL for scale in metric.card.scales}.values()
    assert len(scales) >= 10
    for scale in scales:
        uppers = [upper for upper, _ in scale.bands]
        assert uppers[-1] is None
        assert None not in uppers[:-1]
        assert all(one < two for one, two in pairwise(uppers[:-1]) if one is not None and two is not None)


@pytest.mark.parametrize(
    ("value", "label"),
    [(-0.1, "poor"), (0.0, "slight"), (0.4, "moderate"), (0.799, "substantial"), (1.0, "almost perfect")],
)
def test_landis_and_koch(value: float, label: str) -> None:
    """Bands include their lower end."""
    scale = next(scale for scale in catalogue().of_matrices.by_name["kappa"].card.scales if scale.name == "landis_koch")
    assert scale.label(value) == label


# Means that are no figure of merit

POWERS = [-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0]


def improves_always(key: str, **parameters: float) -> bool:
    """Does raising one recall ever lower the mean? Searched over weak classes beside good ones."""
    metric = catalogue().of_matrices.by_name[key]
    weak = np.linspace(0.02, 0.98, 49)
    for strong in (0.05, 0.3, 0.6, 1.0):
        counts = np.zeros((len(weak), 2, 2))
        counts[:, 0, 0], counts[:, 0, 1] = weak, 1 - weak
        counts[:, 1, 1], counts[:, 1, 0] = strong, 1 - strong
        if (np.diff(value_of(metric, counts, **parameters)) < -1e-12).any():
            return False
    return True


@each("q", POWERS)
@each("p", POWERS)
def test_a_gini_mean_is_monotone_exactly_where_no_caution_is_given(p: float, q: float) -> None:
    caution = catalogue().of_matrices.by_name["gini_mean_recall"].card.caution
    assert caution is not None
    assert (caution(p, q) is None) == (p * q <= 0) == improves_always("gini_mean_recall", p=p, q=q)


@pytest.mark.parametrize("r", [-3.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0])
def test_a_lehmer_mean_is_monotone_exactly_where_no_caution_is_given(r: float) -> None:
    caution = catalogue().of_matrices.by_name["lehmer_mean_recall"].card.caution
    assert caution is not None
    assert (caution(r) is None) == (-1 <= r <= 0) == improves_always("lehmer_mean_recall", r=r)


def test_the_contraharmonic_mean_punishes_an_improvement() -> None:
    """Recalls (1, 0.2) and (1, 0.4): 0.867 and 0.829."""
    lehmer = rate_means.lehmer_mean_recall
    assert value_of(lehmer, np.array([[10, 0], [8, 2]]), r=1.0) == pytest.approx(1.04 / 1.2, rel=1e-15)
    assert value_of(lehmer, np.array([[10, 0], [6, 4]]), r=1.0) == pytest.approx(1.16 / 1.4, rel=1e-15)


def test_only_means_that_need_it_carry_a_caution() -> None:
    assert {metric.key for metric in ALL if metric.card.caution} == {"gini_mean_recall", "lehmer_mean_recall"}


# Limits of the families of means


RECALLS = np.array([[90, 10, 0], [5, 20, 25], [0, 2, 38]])


@pytest.mark.parametrize("r", [1e-3, 1e-6, 1e-9, 1e-13, -1e-9])
def test_power_means_pass_smoothly_through_the_geometric_mean(r: float) -> None:
    """M_r = G (1 + r Var(ln x)/2 + ...): tiny powers keep their digits."""
    geometric = float(value_of(rate_means.g_mean, RECALLS))
    logs = np.log(np.diag(RECALLS) / RECALLS.sum(axis=1))
    expected = geometric * math.exp(r * logs.var() / 2)
    assert value_of(rate_means.power_mean_recall, RECALLS, r=r) == pytest.approx(expected, rel=1e-14 + r * r)


@pytest.mark.parametrize("r", [300.0, -300.0, 5000.0, -5000.0])
def test_power_means_tend_to_the_extremes(r: float) -> None:
    extreme = value_of(rate_means.max_recall if r > 0 else rate_means.min_recall, RECALLS)
    bound = extreme * 3.0 ** (-1 / r)
    got = value_of(rate_means.power_mean_recall, RECALLS, r=r)
    assert min(extreme, bound) * (1 - 1e-14) <= got <= max(extreme, bound) * (1 + 1e-14)


@each("p", [-1.0, 0.5, 1.0, 2.0])
@each("distance", [1e-4, 1e-6, 1e-8, 1e-12])
def test_gini_means_with_nearly_equal_powers_meet_their_limit(p: float, distance: float) -> None:
    gini = rate_means.gini_mean_recall
    limit = float(value_of(gini, RECALLS, p=p, q=p))
    near = float(value_of(gini, RECALLS, p=p + distance, q=p - distance))
    assert near == pytest.approx(limit, rel=1e-10 + distance**2)


def test_a_recall_of_zero_is_a_limit_from_above() -> None:
    counts = np.array([[0, 5], [1, 9]])
    power, gini = rate_means.power_mean_recall, rate_means.gini_mean_recall
    for r in (0.0, -1e-9, -1.0, -math.inf):
        assert value_of(power, counts, r=r) == 0
    assert value_of(power, counts, r=2.0) == pytest.approx(0.9 / math.sqrt(2), rel=1e-15)
    for p, q in ((0.0, 0.0), (0.0, -1.0), (-1.0, -2.0), (1.0, -1.0)):
        assert value_of(gini, counts, p=p, q=q) == 0
    assert value_of(gini, counts, p=1.0, q=0.0) == pytest.approx(0.45, rel=1e-15)
    nothing = np.array([[0, 5], [10, 0]])
    for p, q in ((1.0, 0.0), (2.0, 1.0), (1.0, 1.0)):
        assert value_of(gini, nothing, p=p, q=q) == 0


@pytest.mark.parametrize("beta", [1e-9, 1e-4])
def test_f_beta_tends_to_precision(beta: float) -> None:
    f_beta, precision = catalogue().of_matrices.by_name["f_beta"], catalogue().of_matrices.by_name["precision"]
    counts = matrices()["dense-3-0"]
    assert value_of(f_beta, counts, beta=beta) == pytest.approx(value_of(precision, counts), rel=10 * beta**2 + 1e-14)
