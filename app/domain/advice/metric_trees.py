"""The decision trees of the survey (Beddar-Wiesing et al. 2025, section 2), and the other papers' advice as trees."""

from typing import Final

from app.domain.advice import metric_advice as m
from app.domain.advice.decision_tree import Branch, Fork, Leaf, Node, Source

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
    "Balanced test data say nothing of the class shares in use. Means of recalls stay the same "
    "there; for other metrics "
    "project the matrix to the shares that are expected."
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
            m.BALANCED_BINARY,
            type1=Leaf((m.PRECISION, m.SPECIFICITY), (NOT_ISOLATED,)),
            type2=Leaf((m.RECALL, m.NPV), (NOT_ISOLATED,)),
            both=Leaf((m.ACCURACY, m.F1)),
            costs=Leaf((m.F_BETA, m.NET_BENEFIT, m.WEIGHTED_H)),
        ),
        _priority(
            m.IMBALANCED_BINARY,
            type1=Leaf((m.LR_POSITIVE, m.PRECISION, m.SPECIFICITY), (NOT_ISOLATED,)),
            type2=Leaf((m.LR_NEGATIVE, m.RECALL), (NOT_ISOLATED,)),
            both=Leaf((m.MCC, m.BALANCED_ACCURACY)),
            costs=Leaf((m.H_MEASURE, m.NET_BENEFIT, m.WEIGHTED_H)),
        ),
    ),
    _balance(
        _priority(
            m.BALANCED_MULTICLASS,
            type1=Leaf((m.MACRO_PRECISION,), (BOTH_SIDES,)),
            type2=Leaf((m.MACRO_RECALL,), (BOTH_SIDES,)),
            both=Leaf((m.AVERAGE_ACCURACY, m.MICRO_F)),
            costs=Leaf((m.MACRO_F_BETA, m.WEIGHTED_KAPPA)),
        ),
        _priority(
            m.IMBALANCED_MULTICLASS,
            type1=Leaf((m.MACRO_PRECISION,), (BOTH_SIDES,)),
            type2=Leaf((m.MACRO_RECALL,), (BOTH_SIDES,)),
            both=Leaf((m.MACRO_F, m.SURVEY_BALANCED)),
            costs=Leaf((m.WEIGHTED_KAPPA, m.MACRO_F_BETA)),
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
        _balance(Leaf((m.MCC, m.ADJUSTED, m.KAPPA), (NOT_INHERENT,)), Leaf((m.MCC, m.KAPPA, m.SCOTT, m.ADJUSTED))),
        _balance(
            Leaf((m.MCC_MULTICLASS, m.KAPPA, m.ADJUSTED)),
            Leaf((m.MCC_MULTICLASS, m.WEIGHTED_KAPPA, m.ADJUSTED), (EVEN_CHANCE,)),
        ),
    ),
)

CURVES: Final = _if(
    "graphical",
    "Is a curve wanted?",
    m.BALANCED_BINARY,
    so="A curve shows all thresholds, a number only one.",
    else_="One decision rule is judged.",
    then=_classes(
        _balance(Leaf((m.ROC, m.DET)), Leaf((m.PR, m.ROC))),
        _balance(Leaf((m.ROC_PAIRS,)), Leaf((m.PR_MACRO, m.ROC_PAIRS))),
    ),
)

PREVALENCE: Final = _balance(
    _classes(Leaf((m.H_MEAN, m.UPM), (SHARES_CHANGE,)), Leaf((m.H_MEAN, m.GPS_UPM, m.ORDERED), (SHARES_CHANGE,))),
    _classes(Leaf((m.H_MEAN, m.UPM)), Leaf((m.H_MEAN, m.GPS_UPM, m.ORDERED))),
)

PROBABILITIES: Final = _if(
    "has_probabilities",
    "Are there predicted probabilities?",
    m.IMCP,
    so="Labels hide how sure the model was: high accuracy can go with low confidence.",
    else_="Only labels can be judged.",
    then=_classes(Leaf((m.IMCP_AREA, m.LOG_LOSS, m.BRIER), (TWO_CLASSES,)), Leaf((m.IMCP_AREA, m.LOG_LOSS, m.BRIER))),
)

# The most specific wish is answered first.
TREES: Final[dict[str, Node]] = {
    "chance": CHANCE,
    "curves": CURVES,
    "errors": ERRORS,
    "prevalence": PREVALENCE,
    "probabilities": PROBABILITIES,
}
