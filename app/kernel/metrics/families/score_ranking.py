"""Order of samples by score: areas under ROC and precision-recall curves, their parts, and rates at a required value of
another rate.
"""

from functools import partial

import numpy as np

from app.kernel.metrics.card import OVER_LABELS, Choice, Inputs, Number, Orientation, Prevalence, Scale, Scope, metric
from app.kernel.metrics.conditions import (
    NO_ACTUAL,
    NO_MEMBERS,
    NO_OTHERS,
    NO_REST,
    NO_WEIGHT,
    NOT_PROBABILITIES,
    WEIGHTED,
)
from app.kernel.numerics.arrays import Array, mean, ratio, total
from app.kernel.numerics.scipy_bridge import incomplete_beta
from app.kernel.samples.areas import (
    area_between_recalls,
    hanley_mcneil_error,
    mean_over_log_fpr,
    standardised_of_recalls,
)
from app.kernel.samples.curves import precision_at_recall, recall_at_specificity, specificity_at_recall
from app.kernel.samples.influence import (
    AreaOf,
    Influence,
    InfluenceForm,
    LinearMethod,
    WeightedSamples,
    mean_of,
    of_areas,
    share_of,
)
from app.kernel.samples.rankings import standardised
from app.kernel.samples.scores import Parameters, Scores

_BOTH_SIDES = (NO_ACTUAL, NO_REST)
_OF_ENTRIES = (NOT_PROBABILITIES, NO_WEIGHT, NO_MEMBERS, NO_OTHERS)
_per_class = partial(
    metric,
    scope=Scope.CLASS,
    inputs=Inputs.PROBABILITIES,
    prevalence=Prevalence.INSENSITIVE_BINARY,
    undefined=_BOTH_SIDES,
    also=OVER_LABELS,
)
_overall = partial(metric, scope=Scope.OVERALL, inputs=Inputs.PROBABILITIES, prevalence=Prevalence.SENSITIVE)


def _stack(values: list[Array]) -> Array:
    return np.stack(values, axis=-1)


def _among_first(of: WeightedSamples, class_index: int | None, parameters: Parameters) -> Influence:
    if parameters["k"] >= of.scores.n_classes:
        # 1 by definition: it has no variance.
        return Influence(np.zeros(of.scores.n_samples), LinearMethod.INFLUENCE)
    return share_of(_is_among_first).make(of, class_index, parameters)


def _is_among_first(s: Scores, parameters: Parameters) -> Array:
    """Is the actual class among the first k by falling score, ties by index?"""
    counted: Array = (s.rank_of_truth < parameters["k"]).astype(np.float64)
    return counted


@_per_class(
    name="area under the ROC curve",
    symbol="AUC",
    formula=r"P(s^+ > s^-) + \tfrac{1}{2} P(s^+ = s^-)",
    sentence="Chance that a random member of the class gets a higher score than a random non-member.",
    aliases=("auroc", "auc"),
    elsewhere={"sklearn": "roc_auc_score"},
    chance_corrected=False,
    references=("hanley1982", "fawcett2006", "aguilar2025", "wu2025", "beddar2025"),
    headline=True,
    scale=Scale.LOGIT,
    influence=of_areas(AreaOf.ONE_CLASS),
)
def roc_auc(s: Scores) -> Array:
    return _stack([ranking.auc for ranking in s.rankings])


@_overall(
    name="macro one-vs-rest AUC",
    prevalence=Prevalence.INSENSITIVE_BINARY,
    formula=r"\frac{1}{K} \sum_k \mathrm{AUC}_k",
    sentence="Mean over the classes of the AUC of each against all others.",
    elsewhere={"sklearn": 'roc_auc_score(multi_class="ovr")'},
    undefined=_BOTH_SIDES,
    references=("fawcett2006", "aguilar2024", "beddar2025"),
    scale=Scale.LOGIT,
    influence=of_areas(AreaOf.CLASSES),
    also=OVER_LABELS,
)
def roc_auc_ovr_macro(s: Scores) -> Array:
    return mean(roc_auc.compute(s))


@_overall(
    name="prevalence-weighted one-vs-rest AUC",
    prevalence=Prevalence.INSENSITIVE_BINARY,
    formula=r"\sum_k \pi_k \mathrm{AUC}_k",
    sentence="Mean of the AUCs of each class against all others, large classes counting more.",
    elsewhere={"sklearn": 'roc_auc_score(multi_class="ovr", average="weighted")'},
    undefined=_BOTH_SIDES,
    references=("provost2000", "aguilar2024"),
    scale=Scale.LOGIT,
    influence=of_areas(AreaOf.CLASS_SHARES),
    also=OVER_LABELS,
)
def roc_auc_ovr_weighted(s: Scores) -> Array:
    return total(roc_auc.compute(s) * s.frequencies)


@_overall(
    name="micro AUC",
    formula=r"\mathrm{AUC} \text{ of all } nK \text{ entries against the one-hot truth}",
    sentence="Chance that the probability of an actual class exceeds that of a class that is not, over all samples and classes.",
    elsewhere={"sklearn": 'roc_auc_score(average="micro")'},
    undefined=_OF_ENTRIES,
    references=("fawcett2006", "aguilar2024"),
    scale=Scale.LOGIT,
    influence=of_areas(AreaOf.ENTRIES),
    also=OVER_LABELS,
    on_request_of=OVER_LABELS,
)
def roc_auc_ovr_micro(s: Scores) -> Array:
    return s.area_of_entries if s.have_entries else np.full(s.n.shape, np.nan)


@_overall(
    name="Hand-Till M",
    symbol="M",
    prevalence=Prevalence.INSENSITIVE,
    formula=r"\frac{1}{K(K-1)} \sum_{i \ne j} A(i \mid j)",
    sentence="Mean over all pairs of classes of the AUC that separates the two, whatever the sizes of the classes.",
    aliases=("hand_till_m",),
    elsewhere={"sklearn": 'roc_auc_score(multi_class="ovo")'},
    undefined=(NO_ACTUAL,),
    references=("hand2001", "aguilar2025", "aguilar2024"),
    scale=Scale.LOGIT,
    influence=of_areas(AreaOf.PAIRS),
)
def roc_auc_ovo_macro(s: Scores) -> Array:
    classes = s.n_classes
    return total(total(_pair_areas(s))) / (classes * (classes - 1))


@_overall(
    name="prevalence-weighted one-vs-one AUC",
    formula=r"\frac{\sum_{i<j} (\pi_i + \pi_j) \tfrac{1}{2}[A(i \mid j) + A(j \mid i)]}{\sum_{i<j} (\pi_i + \pi_j)}",
    sentence="Mean over all pairs of classes of the AUC that separates the two, pairs of large classes counting more.",
    elsewhere={"sklearn": 'roc_auc_score(multi_class="ovo", average="weighted")'},
    undefined=(NO_ACTUAL,),
    references=("ferri2009",),
    scale=Scale.LOGIT,
    influence=of_areas(AreaOf.PAIR_SHARES),
)
def roc_auc_ovo_weighted(s: Scores) -> Array:
    # Every class is in K - 1 pairs, so the weights of all ordered pairs add up to 2 (K - 1).
    pair_weights = s.prevalence[..., :, None] + s.prevalence[..., None, :]
    return total(total(pair_weights * _pair_areas(s))) / (2.0 * (s.n_classes - 1))


def _pair_areas(s: Scores) -> Array:
    """A(i|j) of every ordered pair of classes, shape (..., K, K), 0 on the diagonal."""
    pairs = s.actual[..., :, None] * s.actual[..., None, :]
    areas = 1.0 - ratio(s.pair_losses, pairs)
    own = np.arange(s.n_classes)
    areas[..., own, own] = 0.0
    return areas


@_per_class(
    name="standardised partial AUC",
    symbol="pAUC",
    formula=r"\tfrac{1}{2} \left[1 + \frac{\int_0^m \mathrm{TPR}\, d\mathrm{FPR} - m^2/2}{m - m^2/2}\right]",
    sentence="Area under the ROC curve where false positives are rare, scaled so that 0.5 is chance and 1 is perfect.",
    elsewhere={"sklearn": "roc_auc_score(max_fpr=...)"},
    range=(0.0, 1.0),
    parameters=(Number("max_fpr", 0.1, "largest false positive rate", above=0.0, maximum=1.0),),
    references=("mcclish1989",),
)
def partial_roc_auc(s: Scores, max_fpr: float = 0.1) -> Array:
    return standardised(_stack([ranking.area_between(0.0, max_fpr) for ranking in s.rankings]), 0.0, max_fpr)


@_per_class(
    name="Gini coefficient of the ROC curve",
    formula=r"2\,\mathrm{AUC} - 1",
    sentence="AUC scaled so that 0 is chance and 1 is perfect.",
    range=(-1.0, 1.0),
    chance_corrected=True,
    references=("hand2001",),
    scale=Scale.LOGIT,
    influence=of_areas(AreaOf.ONE_CLASS, slope=2.0),
)
def roc_gini(s: Scores) -> Array:
    return 2.0 * roc_auc.compute(s) - 1.0


@_per_class(
    name="average precision",
    symbol="AP",
    prevalence=Prevalence.SENSITIVE,
    formula=r"\sum_i (R_i - R_{i-1}) P_i",
    sentence="Mean precision over the cuts at which members of the class are found; that of a random order is their share.",
    elsewhere={"sklearn": "average_precision_score"},
    undefined=(NO_ACTUAL,),
    references=("davis2006", "aguilar2025", "wu2025", "beddar2025"),
    headline=True,
    scale=Scale.LOGIT,
    influence=of_areas(AreaOf.ONE_CLASS, of_precision=True),
)
def average_precision(s: Scores) -> Array:
    return _stack([ranking.average_precision for ranking in s.rankings])


@_per_class(
    name="trapezoid area under the precision-recall curve",
    symbol="AUPR",
    prevalence=Prevalence.SENSITIVE,
    formula=r"\sum_i (R_i - R_{i-1}) \tfrac{1}{2}(P_i + P_{i-1}), \quad (R_0, P_0) = (0, 1)",
    sentence="Area under straight lines between the points of the precision-recall curve, which starts at (0, 1).",
    aliases=("aupr", "auc_pr"),
    elsewhere={"sklearn": "auc(recall, precision)"},
    undefined=(NO_ACTUAL,),
    references=("davis2006", "wu2025", "beddar2025"),
)
def pr_auc_trapezoid(s: Scores) -> Array:
    return _stack([ratio(ranking.precision_sum, ranking.positives) for ranking in s.rankings])


@_overall(
    name="macro average precision",
    formula=r"\frac{1}{K} \sum_k \mathrm{AP}_k",
    sentence="Mean over the classes of the average precision.",
    elsewhere={"sklearn": 'average_precision_score(average="macro")'},
    undefined=(NO_ACTUAL,),
    references=("davis2006", "beddar2025"),
    scale=Scale.LOGIT,
    influence=of_areas(AreaOf.CLASSES, of_precision=True),
    also=OVER_LABELS,
)
def macro_average_precision(s: Scores) -> Array:
    return mean(average_precision.compute(s))


@_overall(
    name="area under macro precision against macro recall",
    formula=r"\int P_{\text{macro}}(t)\, dR_{\text{macro}}(t) \text{ by trapezoids}",
    sentence="Area under the macro precision against the macro recall while one threshold falls for all classes together.",
    undefined=(NOT_PROBABILITIES, NO_ACTUAL),
    references=("beddar2025",),
)
def macro_pr_auc(s: Scores) -> Array:
    if not s.are_probabilities:
        return np.full(s.n.shape, np.nan)
    return mean(ratio(mean(s.precision_together), s.actual))


@_per_class(
    name="equal error rate",
    symbol="EER",
    formula=r"\mathrm{FPR}(t^*) \text{ where } \mathrm{FPR}(t^*) = \mathrm{FNR}(t^*)",
    sentence="Error rate at the cut where false positives and false negatives are equally frequent in their classes.",
    aliases=("eer",),
    orientation=Orientation.LOWER,
    references=("martin1997", "beddar2025"),
)
def equal_error_rate(s: Scores) -> Array:
    return _stack([ranking.equal_error_rate for ranking in s.rankings])


@_per_class(
    name="Kolmogorov-Smirnov statistic",
    symbol="KS",
    formula=r"\max_t\, \mathrm{TPR}(t) - \mathrm{FPR}(t)",
    sentence="Largest Youden index over all cuts: how far apart the scores of members and non-members lie.",
    chance_corrected=True,
    references=("youden1950",),
    biased=True,
    over_cuts=True,
)
def ks_statistic(s: Scores) -> Array:
    return _stack([ranking.ks for ranking in s.rankings])


@_per_class(
    name="H-measure",
    symbol="H",
    prevalence=Prevalence.SENSITIVE,
    formula=r"1 - \frac{\int \min_t [c \pi_0 \mathrm{FPR}(t) + (1-c) \pi_1 \mathrm{FNR}(t)]\, w(c)\, dc}"
    r"{\int \min(c \pi_0, (1-c) \pi_1)\, w(c)\, dc}, \quad w = \mathrm{Beta}(a, b)",
    sentence="Share of the unavoidable cost that the best cuts save, averaged over how much worse one error may be than the other.",
    chance_corrected=True,
    parameters=(
        Number(
            "a",
            0.0,
            "first parameter of the Beta distribution of costs; 0 stands for 1 + share of the class",
            minimum=0.0,
        ),
        Number("b", 0.0, "second parameter; 0 stands for 1 + share of the other classes", minimum=0.0),
    ),
    elsewhere={"hmeasure": "H"},
    differs={
        "hmeasure": "without a severity ratio it takes Beta(2, 1 + share of the others / share of the class), which is "
        "a=2 and that b here; where the AUC is below 0.5 it reverses the scores"
    },
    references=("hand2009", "hand2014", "beddar2025"),
    biased=True,
    also=None,
    details=lambda s: dict(zip(("a", "b"), severity(s), strict=True)),
)
def h_measure(s: Scores, a: float = 0.0, b: float = 0.0) -> Array:
    values = np.full(s.actual.shape, np.nan)
    first, second = severity(s, a, b)
    for code, ranking in enumerate(s.rankings):
        defined = (ranking.positives > 0) & (ranking.negatives > 0)
        for row, (tp, fp) in zip(np.ndindex(defined.shape), ranking.hulls, strict=True):
            if defined[row]:
                where = (*row, code)
                values[where] = _saved_cost(tp, fp, float(first[where]), float(second[where]))
    return values


def severity(s: Scores, a: float = 0.0, b: float = 0.0) -> tuple[Array, Array]:
    """The parameters of the Beta distribution that ``h_measure`` uses for each class, each of shape (..., K)."""
    share = s.prevalence
    first = np.full(share.shape, a) if a > 0 else 1.0 + share
    second = np.full(share.shape, b) if b > 0 else 1.0 + ratio(s.rest, s.n[..., None])
    return first, second


def _saved_cost(tp: Array, fp: Array, a: float, b: float) -> float:
    """H of a hull (tp, fp) in counts; the cost c of a false positive is Beta(a, b). Exact, by incomplete beta
    functions.
    """
    positives, negatives = float(tp[-1]), float(fp[-1])
    up, right = np.diff(tp), np.diff(fp)
    # A vertex is best between the costs at which its two edges are level, c = dTP / (dTP + dFP).
    bounds = np.concatenate([[1.0], up / (up + right), [0.0]])
    chance = positives / (positives + negatives)
    points = np.append(bounds, chance)
    below_fp = a / (a + b) * incomplete_beta(a + 1.0, b, points)
    below_fn = b / (a + b) * incomplete_beta(a, b + 1.0, points)
    loss = float(fp @ -np.diff(below_fp[:-1]) + (positives - tp) @ -np.diff(below_fn[:-1]))
    worst = negatives * float(below_fp[-1]) + positives * (b / (a + b) - float(below_fn[-1]))
    return 1.0 - loss / worst


@_overall(
    name="top-k accuracy",
    formula=r"\frac{1}{n} \sum_i [\text{the actual class is among the } k \text{ most probable}]",
    sentence="Share of samples whose class is among the k most probable ones; ties go to the class that comes first.",
    elsewhere={"sklearn": "top_k_accuracy_score"},
    differs={"sklearn": "of equally probable classes it names those that come last, here those that come first"},
    parameters=(Number("k", 2.0, "how many classes may be named", minimum=1.0, integral=True),),
    undefined=(NO_WEIGHT,),
    references=("beddar2025",),
    influence=InfluenceForm(LinearMethod.WILSON, _among_first),
)
def top_k_accuracy(s: Scores, k: float = 2.0) -> Array:
    if k >= s.n_classes:
        return ratio(s.n, s.n)
    return ratio(total(s.sums_of(s.row_values(_is_among_first, {"k": k}))), s.n)


_rate = partial(_per_class, references=("pepe2003", "robin2011"), also=None, on_request=True)


@_rate(
    name="recall at a specificity",
    formula=r"\max_t \{\mathrm{TPR}(t) : \mathrm{TNR}(t) \ge s\}",
    sentence="Highest recall of the thresholds whose specificity is at least the given one, on these samples.",
    aliases=("sensitivity_at",),
    elsewhere={"torchmetrics": "BinarySensitivityAtSpecificity"},
    parameters=(Number("specificity", 0.9, "smallest specificity", minimum=0.0, maximum=1.0),),
)
def recall_at(s: Scores, specificity: float = 0.9) -> Array:
    return np.stack([recall_at_specificity(ranking, specificity) for ranking in s.rankings], axis=-1)


@_rate(
    name="specificity at a recall",
    formula=r"\max_t \{\mathrm{TNR}(t) : \mathrm{TPR}(t) \ge r\}",
    sentence="Highest specificity of the thresholds whose recall is at least the given one, on these samples.",
    elsewhere={"torchmetrics": "BinarySpecificityAtSensitivity"},
    parameters=(Number("recall", 0.9, "smallest recall", minimum=0.0, maximum=1.0),),
)
def specificity_at(s: Scores, recall: float = 0.9) -> Array:
    return np.stack([specificity_at_recall(ranking, recall) for ranking in s.rankings], axis=-1)


@_rate(
    name="precision at a recall",
    prevalence=Prevalence.SENSITIVE,
    formula=r"\max_t \{\mathrm{PPV}(t) : \mathrm{TPR}(t) \ge r\}",
    sentence="Highest precision of the thresholds whose recall is at least the given one, on these samples.",
    elsewhere={"torchmetrics": "BinaryPrecisionAtFixedRecall"},
    parameters=(Number("recall", 0.8, "smallest recall", above=0.0, maximum=1.0),),
    undefined=(NO_ACTUAL,),
    references=("davis2006",),
)
def precision_at(s: Scores, recall: float = 0.8) -> Array:
    return np.stack([precision_at_recall(ranking, recall) for ranking in s.rankings], axis=-1)


_area = partial(_per_class, also=None, on_request=True)


@_area(
    name="partial AUC of an interval",
    symbol="pAUC",
    formula=r"\tfrac{1}{2}\left[1 + \frac{A - A_{\text{chance}}}{b - a - A_{\text{chance}}}\right], \quad "
    r"A = \int_a^b \mathrm{TPR}\, d\mathrm{FPR} \text{ or } \int_a^b \mathrm{TNR}\, d\mathrm{TPR}",
    sentence="Area under a part of the ROC curve, between two false positive rates or two recalls, scaled so that 0.5 is "
    "chance and 1 is perfect, or as it is.",
    range=(None, 1.0),
    parameters=(
        Number("low", 0.0, "where the interval begins, before its end", minimum=0.0, below=1.0),
        Number("high", 0.1, "where it ends", above=0.0, maximum=1.0),
        Choice("along", "fpr", "of which rate the interval is", ("fpr", "recall")),
        Choice("scaled", "mcclish", "the area as it is, or in McClish's form", ("mcclish", "none")),
    ),
    rising=("low", "high"),
    references=("mcclish1989", "robin2011"),
)
def roc_auc_between(
    s: Scores, low: float = 0.0, high: float = 0.1, along: str = "fpr", scaled: str = "mcclish"
) -> Array:
    if along == "recall":
        areas, form = [area_between_recalls(order, low, high) for order in s.rankings], standardised_of_recalls
    else:
        areas, form = [order.area_between(low, high) for order in s.rankings], standardised
    return form(_stack(areas), low, high) if scaled == "mcclish" else _stack(areas)


@_area(
    name="area under the ROC curve over the logarithm of the false positive rate",
    symbol="logAUC",
    formula=r"\frac{1}{\ln(b/a)} \int_a^b \frac{\mathrm{TPR}}{\mathrm{FPR}}\, d\mathrm{FPR}",
    sentence="Mean recall over the orders of magnitude of small false positive rates, so that early hits count most.",
    aliases=("logauc",),
    elsewhere={"torchmetrics": "BinaryLogAUC"},
    differs={
        "torchmetrics": "it draws straight lines between the points over the logarithm, here they are those of the ROC "
        "curve"
    },
    parameters=(
        Number("low", 0.001, "smallest false positive rate", above=0.0, below=1.0),
        Number("high", 0.1, "largest", above=0.0, maximum=1.0),
    ),
    rising=("low", "high"),
    references=("mysinger2010",),
)
def log_auc(s: Scores, low: float = 0.001, high: float = 0.1) -> Array:
    return np.stack([mean_over_log_fpr(order, low, high) for order in s.rankings], axis=-1)


@_area(
    name="standard error of AUC by Hanley and McNeil",
    formula=r"\sqrt{\frac{A(1-A) + (n_1-1)(Q_1-A^2) + (n_0-1)(Q_2-A^2)}{n_1 n_0}}, \quad "
    r"Q_1=\tfrac{A}{2-A},\ Q_2=\tfrac{2A^2}{1+A}",
    sentence="Standard error of AUC from itself and the class sizes alone, for comparison with what others report; "
    "intervals are DeLong's.",
    prevalence=Prevalence.SENSITIVE,
    range=(0.0, 0.5),
    orientation=Orientation.LOWER,
    undefined=(NO_ACTUAL, NO_REST, WEIGHTED),
    degree=None,
    references=("hanley1982",),
    about_sample=True,
)
def roc_auc_standard_error(s: Scores) -> Array:
    if s.weights is not None:
        return np.full(s.actual.shape, np.nan)
    return hanley_mcneil_error(roc_auc.compute(s), s.actual, s.rest)


@_area(
    name="weighted average precision",
    scope=Scope.OVERALL,
    prevalence=Prevalence.SENSITIVE,
    formula=r"\sum_k \frac{n_k}{n} \mathrm{AP}_k",
    sentence="Mean over the classes of the average precision, weighted by how frequent they are.",
    elsewhere={"sklearn": 'average_precision_score(average="weighted")'},
    undefined=(NO_ACTUAL,),
    references=("davis2006", "beddar2025"),
    scale=Scale.LOGIT,
    influence=of_areas(AreaOf.CLASS_SHARES, of_precision=True),
    also=OVER_LABELS,
)
def weighted_average_precision(s: Scores) -> Array:
    return total(s.frequencies * average_precision.compute(s))


@_area(
    name="micro average precision",
    scope=Scope.OVERALL,
    prevalence=Prevalence.SENSITIVE,
    formula=r"\mathrm{AP} \text{ of all } nK \text{ entries against the one-hot truth}",
    sentence="Average precision of all classes of all samples in one order of their probabilities.",
    elsewhere={"sklearn": 'average_precision_score(average="micro")'},
    undefined=_OF_ENTRIES,
    references=("davis2006", "beddar2025"),
    scale=Scale.LOGIT,
    influence=of_areas(AreaOf.ENTRIES, of_precision=True),
    also=OVER_LABELS,
)
def micro_average_precision(s: Scores) -> Array:
    return s.ranking(None).average_precision if s.have_entries else np.full(s.n.shape, np.nan)


def _places(s: Scores) -> tuple[Array, Array]:
    """Number of classes (n) with less probability than the actual one, and of others with the same."""
    below, tied = np.zeros(s.n_samples), np.full(s.n_samples, -1.0)
    for column in s.columns:
        below += column < s.own
        tied += column == s.own
    return below, tied


def _reciprocal_ranks(s: Scores, _: Parameters) -> Array:
    return 1.0 / (s.n_classes - _places(s)[0])


def _shares_below(s: Scores, _: Parameters) -> Array:
    below, tied = _places(s)
    return (below + 0.5 * tied) / (s.n_classes - 1.0)


_of_rows = partial(_area, scope=Scope.OVERALL, prevalence=Prevalence.SENSITIVE, undefined=(NO_WEIGHT,))


@_of_rows(
    name="reciprocal rank of the actual class",
    formula=r"\frac{1}{n} \sum_i \frac{1}{|\{k: p_{ik} \ge p_{i y_i}\}|}",
    sentence="Average precision of the classes of each sample, averaged over the samples; of tied classes the actual one "
    "is the last.",
    aliases=("samples_average_precision",),
    elsewhere={"sklearn": 'average_precision_score(average="samples")'},
    references=("tsoumakas2010",),
    influence=mean_of(_reciprocal_ranks),
)
def class_reciprocal_rank(s: Scores) -> Array:
    return ratio(total(s.sums_of(s.row_values(_reciprocal_ranks, {}))), s.n)


@_of_rows(
    name="AUC of the classes of a sample",
    formula=r"\frac{1}{n} \sum_i P(p_{i y_i} > p_{ik}) + \tfrac{1}{2} P(p_{i y_i} = p_{ik}),\ k \ne y_i",
    sentence="Chance that the actual class of a sample has more probability than another class, averaged over the samples.",
    aliases=("roc_auc_ovr_samples",),
    elsewhere={"sklearn": "roc_auc_score(average=samples)"},
    references=("tsoumakas2010",),
    influence=mean_of(_shares_below),
)
def class_rank_auc(s: Scores) -> Array:
    return ratio(total(s.sums_of(s.row_values(_shares_below, {}))), s.n)
