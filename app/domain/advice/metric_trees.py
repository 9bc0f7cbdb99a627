"""Decision trees for metrics of classes, with what each metric is good for.

The trees and the advice are those of the survey (Beddar-Wiesing et al. 2025, section 2) and of other papers. Where the
survey is in error, the advice says so.
"""

from typing import Final

from app.domain.advice.decision_tree import Advice, Alternative, Branch, Fork, Leaf, Node, Source
from app.kernel.metrics.card import Inputs

BALANCED_BINARY: Final = Source("beddar2025", "section 2.1")
BALANCED_MULTICLASS: Final = Source("beddar2025", "section 2.2")
IMBALANCED_BINARY: Final = Source("beddar2025", "section 2.3")
IMBALANCED_MULTICLASS: Final = Source("beddar2025", "section 2.4")
GPS: Final = Source("martin2022", "section 3")
IMCP: Final = Source("aguilar2024", "introduction and discussion")
PROPER_SCORES: Final = Source("gneiting2007", "sections 1 and 3")

MOVES_WITH_PREVALENCE: Final = (
    "Aguilar-Ruiz (2025, section 2): it moves with class prevalence alone, so it does not compare "
    "models across datasets; "
    "its twin at balanced prevalence does."
)

PROPER_AT_ITS_SHARES: Final = (
    "It moves with class prevalence: across datasets compare it at a common one. The averages over the classes "
    "(balanced_log_loss, balanced_brier_score) do not move, but are proper only where all classes are equally frequent."
)

# Errors of one class.

PRECISION: Final = Advice(
    metric="precision",
    reason="Share of the alarms that are right.",
    source=BALANCED_BINARY,
    alternatives=(Alternative("fdr", "the share of the alarms that are wrong: small is good"),),
    disagreement="Unlike specificity it depends on how frequent the class is (Aguilar-Ruiz 2025, section 2.2.2).",
)
SPECIFICITY: Final = Advice(
    metric="specificity",
    reason="Share of the negatives that raise no alarm.",
    source=BALANCED_BINARY,
    alternatives=(Alternative("fpr", "the share of the negatives that raise one: small is good"),),
    disagreement="The survey's eq. 5 divides by TN + FN, which gives the NPV; its eq. 12 has the right form.",
)
RECALL: Final = Advice(
    metric="recall",
    reason="Share of the positives that are found.",
    source=BALANCED_BINARY,
    alternatives=(Alternative("fnr", "the share that is missed: small is good"),),
)
NPV: Final = Advice(
    metric="npv",
    reason="Share of the all-clears that are right.",
    source=BALANCED_BINARY,
    disagreement="It depends on prevalence: with few positives it is close to 1 for almost any model.",
)
LR_POSITIVE: Final = Advice(
    metric="likelihood_ratio_positive",
    reason="How much an alarm raises the odds of the positive class: diagnostic testing.",
    source=IMBALANCED_BINARY,
    disagreement="The survey prints TPR/(1-FNR), which is always 1; it is TPR/FPR.",
)
LR_NEGATIVE: Final = Advice(
    metric="likelihood_ratio_negative",
    reason="How much an all-clear lowers the odds of the positive class: diagnostic testing.",
    source=IMBALANCED_BINARY,
    disagreement="The survey prints (1-TPR)/FNR, which is always 1; it is FNR/TNR.",
)
ACCURACY: Final = Advice(
    metric="accuracy",
    reason="A quick overview, fit only while the classes are balanced.",
    source=BALANCED_BINARY,
    alternatives=(Alternative("balanced_accuracy", "the same with every class weighing alike"),),
    disagreement=(
        "Aguilar-Ruiz (2025, section 2.3): metrics that prevalence does not move should be the "
        "default wherever every class "
        "matters."
    ),
)
F1: Final = Advice(
    metric="f1",
    reason="Harmonic mean of precision and recall: low when either error is frequent.",
    source=BALANCED_BINARY,
    alternatives=(
        Alternative("f_beta", "beta above 1 weighs recall higher, below 1 precision"),
        Alternative("upm", "sees the true negatives too, which F1 does not (Martín De Diego et al. 2022)"),
    ),
    disagreement=MOVES_WITH_PREVALENCE,
)
F_BETA: Final = Advice(
    metric="f_beta",
    reason="beta sets what a miss weighs against a false alarm.",
    source=BALANCED_BINARY,
    parameters="beta=<weight>",
    disagreement=MOVES_WITH_PREVALENCE,
)
NET_BENEFIT: Final = Advice(
    metric="net_benefit",
    reason="True alarms minus false ones, weighed by the probability from which acting pays.",
    source=Source("vickers2006", "net benefit"),
    condition="the exchange rate between a false alarm and a miss can be named",
    parameters="threshold=<probability>",
    curve="decision",
)
WEIGHTED_H: Final = Advice(
    metric="weighted_h_mean",
    reason="Harmonic mean of recall and specificity with an adjustable weight; prevalence does not move it.",
    source=Source("aguilar2025", "section 4.3"),
    parameters="beta=<weight>",
    alternatives=(
        Alternative("weighted_g_mean", "milder"),
        Alternative("weighted_balanced_accuracy", "milder still: one rate makes up for the other"),
    ),
    disagreement="Its beta above 1 weighs specificity higher; that of f_beta weighs recall higher.",
)
H_MEASURE: Final = Advice(
    metric="h_measure",
    reason="Expected cost of the best threshold, averaged over costs that are uncertain.",
    source=IMBALANCED_BINARY,
    inputs=Inputs.PROBABILITIES,
    condition="the costs are known as a distribution only",
    disagreement=(
        "The survey wants it where costs are clearly known; it is made for costs that are not. The "
        "survey's eq. 18 also "
        "lacks the minimum over thresholds and the normalisation."
    ),
    instead=NET_BENEFIT,
)
MCC: Final = Advice(
    metric="mcc",
    reason="Uses all four cells and is 0 for guessing: the survey's first choice under strong imbalance.",
    source=IMBALANCED_BINARY,
    alternatives=(Alternative("cohen_kappa", "the same idea as agreement; never further from 0 than MCC"),),
    disagreement=MOVES_WITH_PREVALENCE,
)
BALANCED_ACCURACY: Final = Advice(
    metric="balanced_accuracy",
    reason="Mean of the recalls: replaces accuracy under moderate imbalance.",
    source=IMBALANCED_BINARY,
    alternatives=(Alternative("h_mean", "does not let a good class make up for a bad one"),),
    disagreement=(
        "The survey finds it unsuitable under extreme imbalance. Aguilar-Ruiz (2025) and Wu & "
        "Cannistraci (2025) recommend "
        "means of the recalls exactly there, the harmonic one for its severity."
    ),
)

# Errors of many classes.

MACRO_PRECISION: Final = Advice(
    metric="macro_precision",
    reason="Precision averaged over the classes: false alarms count in every class.",
    source=IMBALANCED_MULTICLASS,
    alternatives=(Alternative("gps_precision", "harmonic: one bad class pulls it down"),),
    disagreement="Undefined when a class is never predicted; some libraries count 0 there.",
)
MACRO_RECALL: Final = Advice(
    metric="balanced_accuracy",
    reason="Recall averaged over the classes: misses count in every class, whatever its size.",
    source=IMBALANCED_MULTICLASS,
    alternatives=(
        Alternative("h_mean", "harmonic: one bad class pulls it down"),
        Alternative("min_recall", "only the worst class counts"),
    ),
)
AVERAGE_ACCURACY: Final = Advice(
    metric="average_accuracy",
    reason="Accuracy of every class against the rest, averaged.",
    source=BALANCED_MULTICLASS,
    alternatives=(Alternative("accuracy", "the same errors on a scale that does not depend on the number of classes"),),
    disagreement="It equals 1 - 2 (1 - accuracy)/K: with many classes it is near 1 for poor models too.",
)
MICRO_F: Final = Advice(
    metric="micro_f_beta",
    reason="F of the counts of all classes pooled.",
    source=BALANCED_MULTICLASS,
    disagreement="With one label per sample it equals accuracy for every beta, so it adds nothing to it.",
)
MACRO_F: Final = Advice(
    metric="macro_f1_of_means",
    reason="Macro precision and macro recall in one number.",
    source=IMBALANCED_MULTICLASS,
    alternatives=(
        Alternative("macro_f1", "mean of the F1 of the classes: what most libraries call macro F1"),
        Alternative("gps_upm", "all four rates of every class have to be good (Martín De Diego et al. 2022)"),
    ),
    disagreement=(
        "Two definitions share one name: F of the means (the survey's eq. 20) and mean of the F. Never mix them."
    ),
)
MACRO_F_BETA: Final = Advice(
    metric="macro_f_beta",
    reason="F of every class with an adjustable weight of misses against false alarms, averaged.",
    source=IMBALANCED_MULTICLASS,
    parameters="beta=<weight>",
    disagreement=MOVES_WITH_PREVALENCE,
)
SURVEY_BALANCED: Final = Advice(
    metric="survey_balanced_accuracy",
    reason="Mean of macro recall and macro specificity: minority classes weigh as much as others.",
    source=IMBALANCED_MULTICLASS,
    alternatives=(Alternative("balanced_accuracy", "mean of the recalls: what most libraries call balanced accuracy"),),
    disagreement=(
        "Beyond two classes it is not the usual balanced accuracy, and its specificities depend on prevalence."
    ),
)
WEIGHTED_KAPPA: Final = Advice(
    metric="weighted_kappa",
    reason="Each confusion weighs by its distance in the order of the classes, as a stand-in for its cost.",
    source=IMBALANCED_MULTICLASS,
    condition="costs grow with the distance between classes in their order",
    parameters="weights=<linear|quadratic>",
    disagreement="The survey's eq. 23 divides by the number of classes where it has to be the number of samples.",
)

# Performance beyond guessing.

KAPPA: Final = Advice(
    metric="cohen_kappa",
    reason="Agreement beyond what class prevalence gives by chance.",
    source=IMBALANCED_BINARY,
    disagreement=(
        "Prevalence paradox: with a rare class it can be near 0 at a very high accuracy "
        "(Aguilar-Ruiz 2025, section 2.2.6). "
        "The survey finds it less useful than MCC there."
    ),
)
SCOTT: Final = Advice(
    metric="scott_pi",
    reason="As kappa, with class prevalence in data and predictions pooled.",
    source=IMBALANCED_BINARY,
)
MCC_MULTICLASS: Final = Advice(
    metric="mcc",
    reason="Correlation of actual and predicted classes over the whole matrix (R_K), 0 for guessing.",
    source=IMBALANCED_MULTICLASS,
    disagreement="It can hide a weak class: 0.939 where one of four has recall 0.16 (Aguilar-Ruiz 2025, section 6).",
)
ADJUSTED: Final = Advice(
    metric="adjusted_balanced_accuracy",
    reason="0 for guessing, 1 for perfection, and prevalence does not move it.",
    source=Source("aguilar2025", "section 2.1.2"),
    alternatives=(Alternative("informedness", "the same for two classes"),),
)

# Curves and their areas.

ROC: Final = Advice(
    metric="roc_auc",
    reason="Recall against false alarms over all thresholds; for two classes prevalence does not move it.",
    source=BALANCED_BINARY,
    inputs=Inputs.PROBABILITIES,
    curve="roc",
    alternatives=(Alternative("partial_roc_auc", "only the part with few false alarms"),),
    disagreement=(
        "Too optimistic under strong imbalance, says the survey; fair across datasets, says "
        "Aguilar-Ruiz (2025, section 2.1.5)."
    ),
    instead=Advice(
        metric="balanced_accuracy_ovr",
        reason="Area under the ROC curve with a single point.",
        source=BALANCED_BINARY,
    ),
)
DET: Final = Advice(
    metric="equal_error_rate",
    reason="Misses against false alarms on normal axes: the curves are nearly straight and easy to tell apart.",
    source=BALANCED_BINARY,
    inputs=Inputs.PROBABILITIES,
    curve="det",
)
PR: Final = Advice(
    metric="average_precision",
    reason="Precision against recall: shows what happens to the positive class when it is rare.",
    source=IMBALANCED_BINARY,
    inputs=Inputs.PROBABILITIES,
    curve="pr",
    alternatives=(Alternative("pr_auc_trapezoid", "the same points joined by straight lines, which is optimistic"),),
    disagreement=(
        "The survey prefers it to ROC under imbalance; it moves with prevalence (Aguilar-Ruiz 2025, "
        "section 2.2.4), and "
        "guessing scores the prevalence: give that beside it."
    ),
    instead=Advice(
        metric="single_point_aupr",
        reason="Mean of precision and recall: the curve with a single point.",
        source=IMBALANCED_BINARY,
    ),
)
ROC_PAIRS: Final = Advice(
    metric="roc_auc_ovo_macro",
    reason="How well each pair of classes is told apart, averaged; prevalence does not move it.",
    source=Source("beddar2025", "remark 2.1"),
    inputs=Inputs.PROBABILITIES,
    curve="roc",
    alternatives=(
        Alternative(
            "roc_auc_ovr_macro", "each class against the rest; beyond two classes it moves with class prevalence"
        ),
    ),
    disagreement=(
        "An average of binary areas is no curve of its own; IMCP is one for all classes (Aguilar-Ruiz & Michalak 2024)."
    ),
    instead=MACRO_RECALL,
)
PR_MACRO: Final = Advice(
    metric="macro_pr_auc",
    reason="Macro precision against macro recall over a common threshold.",
    source=IMBALANCED_MULTICLASS,
    inputs=Inputs.PROBABILITIES,
    curve="pr",
    alternatives=(
        Alternative("macro_average_precision", "average precision of every class, averaged: the usual form"),
    ),
    disagreement=MOVES_WITH_PREVALENCE,
    instead=MACRO_F,
)
IMCP_AREA: Final = Advice(
    metric="au_imcp",
    reason="How near the probability of the true class is to 1, every class weighing the same.",
    source=IMCP,
    inputs=Inputs.PROBABILITIES,
    curve="imcp",
    alternatives=(
        Alternative("mean_phi", "the same class by class"),
        Alternative("au_mcp", "every sample weighing the same, so it moves with prevalence"),
    ),
    disagreement=(
        "It is not on the scale of a ROC area: the two are not comparable, and guessing is far below 0.5. It is no "
        "proper score: calibrated probabilities that are sharpened score better by it, and worse by log loss and the "
        "Brier score. Never choose between models by it alone."
    ),
)
LOG_LOSS: Final = Advice(
    metric="log_loss",
    reason="Proper: best on average for the true probabilities alone. A confident mistake costs most.",
    source=PROPER_SCORES,
    inputs=Inputs.PROBABILITIES,
    alternatives=(Alternative("brier_skill_score", "the Brier score with 0 for always naming class prevalence"),),
    disagreement=PROPER_AT_ITS_SHARES,
)
BRIER: Final = Advice(
    metric="brier_score",
    reason="Proper as log loss is, and bounded: one confident mistake cannot decide it.",
    source=PROPER_SCORES,
    inputs=Inputs.PROBABILITIES,
    curve="calibration",
    alternatives=(Alternative("spherical_score", "proper too, on a scale from 0 to 1"),),
    disagreement=PROPER_AT_ITS_SHARES,
)

# Whatever the class shares: the advice of the other papers.

H_MEAN: Final = Advice(
    metric="h_mean",
    reason="No class may fail: one weak class pulls it down whatever its share, and prevalence does not move it.",
    source=Source("aguilar2025", "section 6"),
    alternatives=(
        Alternative("min_recall", "stricter: only the worst class counts"),
        Alternative("g_mean", "milder; still 0 when a class is never found"),
        Alternative("balanced_accuracy", "milder still: good classes make up for bad ones"),
    ),
    disagreement=(
        "Where trade-offs between classes are accepted, or classes have few or noisy samples, its "
        "severity overreacts and G "
        "or A serve better (Aguilar-Ruiz 2025, section 6). Wu & Cannistraci (2025) hold that "
        "underestimating is the safer side."
    ),
)
UPM: Final = Advice(
    metric="upm",
    reason="High only when precision, recall, specificity and NPV all are.",
    source=GPS,
    condition="all four rates matter",
    disagreement=MOVES_WITH_PREVALENCE,
)
GPS_UPM: Final = Advice(
    metric="gps_upm",
    reason="High only when all four rates of every class are; gps(...) makes such a score of any rates.",
    source=GPS,
    condition="all four rates of every class matter",
    disagreement=MOVES_WITH_PREVALENCE,
)
ORDERED: Final = Advice(
    metric="gps_upm_ordered",
    reason="Cuts the ordered classes in two in every way and asks for all four rates at each cut.",
    source=Source("martin2022", "eq. 23"),
    condition="the classes have an order",
    disagreement=MOVES_WITH_PREVALENCE,
)


SURVEY: Final = Source("beddar2025", "section 6")
BALANCE: Final = Source("beddar2025", "section 1.4")

NOT_ISOLATED: Final = (
    "Precision, specificity, recall and NPV each see half of the matrix: none should be used alone "
    "(survey, section 2.1)."
)
BOTH_SIDES: Final = (
    "A false alarm of one class is a miss of another: with several classes read precision and recall of each together."
)
NOT_INHERENT: Final = (
    "The survey (section 1.4) calls many metrics for balanced binary data inherently corrected for chance. Accuracy, "
    "precision, recall and F1 are not: guessing gives about 0.5 there, not 0."
)
EVEN_CHANCE: Final = (
    "The survey advises kappa_n (bennett_s) here, and gwet_ac1 is said to escape the paradox of kappa. Both take "
    "chance to be more even than the classes are: with two classes, always naming the one that has 15 of 16 samples "
    "scores 0.875 and 0.933, where a value that is corrected for chance is 0."
)
SHARES_CHANGE: Final = (
    "Balanced test data say nothing of class prevalence in use. Means of recalls stay the same "
    "there; for other metrics "
    "project the matrix to the prevalence that is expected."
)
TWO_CLASSES: Final = "For two classes a ROC curve serves as well; IMCP is made for more (Aguilar-Ruiz & Michalak 2024)."


def _classes(binary: Node, multiclass: Node) -> Fork:
    return Fork(
        "classes",
        "How many classes are there?",
        SURVEY,
        (
            Branch(("binary",), "One class is the positive one: every error is a false alarm or a miss.", binary),
            Branch(("multiclass",), "Every class has its own rates, and they have to be brought together.", multiclass),
        ),
    )


def _balance(balanced: Node, imbalanced: Node) -> Fork:
    return Fork(
        "balanced",
        "Are the classes about equally frequent?",
        BALANCE,
        (
            Branch((True,), "Every class has about the same weight in a count of errors.", balanced),
            Branch((False,), "A count of errors is dominated by the frequent classes.", imbalanced),
        ),
    )


def _priority(source: Source, *, type1: Leaf, type2: Leaf, both: Leaf, costs: Leaf) -> Fork:
    return Fork(
        "error_priority",
        "Which error matters most?",
        source,
        (
            Branch(("type1",), "False alarms weigh more than misses.", type1),
            Branch(("type2",), "Misses weigh more than false alarms.", type2),
            Branch(("both",), "Both errors weigh the same.", both),
            Branch(("costs",), "Errors weigh what they cost, so the weight has to be adjustable.", costs),
        ),
    )


def _if(about: str, text: str, source: Source, *, so: str, else_: str, then: Node) -> Fork:
    return Fork(about, text, source, (Branch((True,), so, then), Branch((False,), else_, Leaf(()))))


ERRORS: Final = _classes(
    _balance(
        _priority(
            BALANCED_BINARY,
            type1=Leaf((PRECISION, SPECIFICITY), (NOT_ISOLATED,)),
            type2=Leaf((RECALL, NPV), (NOT_ISOLATED,)),
            both=Leaf((ACCURACY, F1)),
            costs=Leaf((F_BETA, NET_BENEFIT, WEIGHTED_H)),
        ),
        _priority(
            IMBALANCED_BINARY,
            type1=Leaf((LR_POSITIVE, PRECISION, SPECIFICITY), (NOT_ISOLATED,)),
            type2=Leaf((LR_NEGATIVE, RECALL), (NOT_ISOLATED,)),
            both=Leaf((MCC, BALANCED_ACCURACY)),
            costs=Leaf((H_MEASURE, NET_BENEFIT, WEIGHTED_H)),
        ),
    ),
    _balance(
        _priority(
            BALANCED_MULTICLASS,
            type1=Leaf((MACRO_PRECISION,), (BOTH_SIDES,)),
            type2=Leaf((MACRO_RECALL,), (BOTH_SIDES,)),
            both=Leaf((AVERAGE_ACCURACY, MICRO_F)),
            costs=Leaf((MACRO_F_BETA, WEIGHTED_KAPPA)),
        ),
        _priority(
            IMBALANCED_MULTICLASS,
            type1=Leaf((MACRO_PRECISION,), (BOTH_SIDES,)),
            type2=Leaf((MACRO_RECALL,), (BOTH_SIDES,)),
            both=Leaf((MACRO_F, SURVEY_BALANCED)),
            costs=Leaf((WEIGHTED_KAPPA, MACRO_F_BETA)),
        ),
    ),
)

CHANCE: Final = _if(
    "chance_corrected",
    "Should guessing score 0?",
    BALANCE,
    so="What guessing would reach is taken off.",
    else_="The plain value is easier to read.",
    then=_classes(
        _balance(Leaf((MCC, ADJUSTED, KAPPA), (NOT_INHERENT,)), Leaf((MCC, KAPPA, SCOTT, ADJUSTED))),
        _balance(
            Leaf((MCC_MULTICLASS, KAPPA, ADJUSTED)),
            Leaf((MCC_MULTICLASS, WEIGHTED_KAPPA, ADJUSTED), (EVEN_CHANCE,)),
        ),
    ),
)

CURVES: Final = _if(
    "graphical",
    "Is a curve wanted?",
    BALANCED_BINARY,
    so="A curve shows all thresholds, a number only one.",
    else_="One decision rule is judged.",
    then=_classes(
        _balance(Leaf((ROC, DET)), Leaf((PR, ROC))),
        _balance(Leaf((ROC_PAIRS,)), Leaf((PR_MACRO, ROC_PAIRS))),
    ),
)

PREVALENCE: Final = _balance(
    _classes(Leaf((H_MEAN, UPM), (SHARES_CHANGE,)), Leaf((H_MEAN, GPS_UPM, ORDERED), (SHARES_CHANGE,))),
    _classes(Leaf((H_MEAN, UPM)), Leaf((H_MEAN, GPS_UPM, ORDERED))),
)

PROBABILITIES: Final = _if(
    "has_probabilities",
    "Are there predicted probabilities?",
    IMCP,
    so="Labels hide how sure the model was: high accuracy can go with low confidence.",
    else_="Only labels can be judged.",
    then=_classes(Leaf((IMCP_AREA, LOG_LOSS, BRIER), (TWO_CLASSES,)), Leaf((IMCP_AREA, LOG_LOSS, BRIER))),
)

# The most specific wish is answered first.
TREES: Final[dict[str, Node]] = {
    "chance": CHANCE,
    "curves": CURVES,
    "errors": ERRORS,
    "prevalence": PREVALENCE,
    "probabilities": PROBABILITIES,
}
