"""Names that other libraries have for metrics: `f1_score(average=macro)`, `pycm.PPV`, `Overall_ACC`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from app.domain.errors import InvalidParameter, UnknownMetric
from app.domain.expressions.syntax import Argument, Assignment, Call
from app.domain.wording import shown
from app.kernel.metrics.card import AnyMetric, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.families import averages, detection, discrimination, proper_scores, rates, score_ranking
from app.kernel.metrics.families.combinations import MAX, MEAN, MIN, RANGE, RATIO

_WRITTEN: Final = re.compile(r"(?P<name>[^\W\d][\w .-]*?)\s*(?:\((?P<arguments>[^()]*)\))?")
# Functions of scikit-learn with an average, and its scorers, are a dimension of their own: `f1_score(average=macro)`,
# `f1_macro`.
_AVERAGED: Final = re.compile(
    r"(?:sklearn\.(?:metrics\.)?)?(?P<of>f1|fbeta|precision|recall|jaccard|specificity|average_precision|roc_auc)"
    r"_(?:score|(?P<how>macro|micro|weighted|samples))"
)
# What the average of these is called here, where it is not `macro_f1`.
_CALLED: Final[Mapping[str, str]] = {"fbeta": "{}_f_beta", score_ranking.roc_auc.key: "roc_auc_ovr_{}"}
# Other scorers. Those that begin with `neg_` mean the loss itself, with its own sign.
_SCORERS: Final[Mapping[str, str]] = {
    "neg_brier_score": proper_scores.brier_score.key,
    "neg_log_loss": proper_scores.log_loss.key,
    "neg_negative_likelihood_ratio": discrimination.likelihood_ratio_negative.key,
    "positive_likelihood_ratio": discrimination.likelihood_ratio_positive.key,
    "roc_auc_ovo": score_ranking.roc_auc_ovo_macro.key,
    "roc_auc_ovr": score_ranking.roc_auc_ovr_macro.key,
}
# Rates that criteria of fairness compare; how Fairlearn and AIF360 end the name of what is compared, and which gap
# counts where there are several.
_PARITIES: Final[Mapping[str, tuple[str, ...]]] = {
    "demographic_parity": (rates.predicted_prevalence.key,),
    "statistical_parity": (rates.predicted_prevalence.key,),
    "selection_rate": (rates.predicted_prevalence.key,),
    "equal_opportunity": (rates.recall.key,),
    "equalized_odds": (rates.recall.key, rates.fpr.key),
    "predictive_equality": (rates.fpr.key,),
    "predictive_parity": (rates.precision.key,),
    "overall_accuracy_equality": (averages.accuracy.key,),
    "treatment_equality": (detection.fn_per_fp.key,),
}
_BETWEEN: Final[Mapping[str, tuple[str, str]]] = {
    "_difference": (RANGE.key, MAX.key),
    "_ratio": (RATIO.key, MIN.key),
}
_RENAMED: Final[Mapping[str, str]] = {
    "disparate_impact": "demographic_parity_ratio",
    "average_odds_difference": "equalized_odds_difference",
    "average_abs_odds_difference": "equalized_odds_difference",
}
# AIF360's mean of differences is the difference of means: what one rate gains the other may lose. That of absolute
# differences is Fairlearn's with this argument.
_OF_MEANS: Final = "average_odds_difference"
_OF_GAPS: Final = "average_abs_odds_difference"
_HOW: Final = "agg"
_WORST: Final = "worst_case"
# Any value is meant: it is handed on to the parameter of that name.
_ANY: Final = "..."


@dataclass(frozen=True, slots=True)
class ForeignName:
    """One name of one library.

    Attributes:
        arguments: What has to be written with it, as text; of any value where it is a parameter here too.
        key: The metric that it means.
        written: All of it.
    """

    library: str
    arguments: Mapping[str, str]
    key: str
    written: str

    def takes(self, given: Mapping[str, str]) -> bool:
        """Are its arguments among those that are given?"""
        return all(name in given and value in (_ANY, given[name]) for name, value in self.arguments.items())

    @property
    def consumed(self) -> Iterator[str]:
        """Arguments that are no parameters."""
        return (name for name, value in self.arguments.items() if value != _ANY)


@dataclass(frozen=True, slots=True)
class Resolved:
    """The meanings of a name of another library.

    Attributes:
        key: The metric, where it means one and no other.
        consumed: The arguments that are part of the name.
        meanings: All metrics that it may mean, by key, and who calls them so.
    """

    key: str | None
    consumed: frozenset[str]
    meanings: Mapping[str, tuple[str, ...]]


def from_elsewhere(call: Call, task: Task | None) -> tuple[AnyMetric, Call] | None:
    """The metric that another library calls so, and the call without the arguments that are part of its name there.

    Raises:
        UnknownMetric: the name alone may mean several metrics; they are offered.
    """
    given = {one.name: one.value.text for one in call.arguments or () if isinstance(one, Assignment)}
    found = resolve(call.name, given, task)
    if found is None:
        return None
    if found.key is None:
        keys = [*found.meanings]
        known = "; ".join(f"{key}: {', '.join(names)}" for key, names in found.meanings.items())
        raise UnknownMetric(
            f"{shown(call.name)} alone may mean several metrics; did you mean {' or '.join(keys)}? ({known})",
            suggestions=keys,
            position=call.position,
        )
    left = [one for one in call.arguments or () if not (isinstance(one, Assignment) and one.name in found.consumed)]
    return catalogue().by_name[found.key], replace(call, arguments=tuple(left))


def between_slices(call: Call, task: Task | None) -> Call | None:
    """`demographic_parity_difference(by=sex)` as `range(predicted_prevalence, by=sex)`; None for other names.

    Raises:
        UnknownMetric: it lacks an attribute, or what is compared is not said.
        InvalidParameter: how several gaps become one is neither of Fairlearn's ways.
    """
    name, given = _RENAMED.get(call.name, call.name), call.arguments or ()
    written, said = "", any(isinstance(one, Assignment) and one.name == "by" for one in given)
    for ending, (function, furthest) in _BETWEEN.items():
        metrics = _PARITIES.get(name.removesuffix(ending), (name.removesuffix(ending),))
        if name in _PARITIES:
            written += f"{' or ' if written else ''}{name}{ending}(by=<attribute>)"
        elif name.endswith(ending) and (catalogue().named(metrics[0], task) or resolve(metrics[0], {}, task)):
            inside, of_gaps = [Call(metric, None, call.selector, call.position) for metric in metrics], furthest
            if call.name == _OF_MEANS:
                inside = [Call(MEAN.key, tuple(inside), None, call.position)]
            elif inside[1:]:
                of_gaps, given = _aggregated(call, furthest)
            gaps = [replace(call, name=function, arguments=(one, *given), selector=None, where=()) for one in inside]
            written = f"{call.name}(by=<attribute>)"
            if said:
                return replace(gaps[0], name=of_gaps, arguments=tuple(gaps)) if gaps[1:] else gaps[0]
    if written:
        raise UnknownMetric(f"{call.name} is over slices: write {written}", position=call.position)
    return None


def _aggregated(call: Call, furthest: str) -> tuple[str, tuple[Argument, ...]]:
    """The function by which several gaps become one, and the arguments without what says so."""
    given = call.arguments or ()
    said = [one for one in given if isinstance(one, Assignment) and one.name == _HOW]
    ways = {_WORST: furthest, MEAN.key: MEAN.key}
    if call.name == _OF_GAPS or not said:
        return MEAN.key if call.name == _OF_GAPS else furthest, given
    if said[1:] or said[0].value.text not in ways:
        raise InvalidParameter(f"{_HOW} of {call.name} is {' or '.join(ways)}, once", position=said[-1].position)
    return ways[said[0].value.text], tuple(one for one in given if one is not said[0])


def resolve(name: str, given: Mapping[str, str], task: Task | None = None) -> Resolved | None:
    """Look up a name of another library, with its arguments, for a task (None is classification).

    Return None if no library has such a name. A name that fits with more of the arguments comes before one that fits
    with fewer; arguments that are no part of the name are left to the parameters of the metric.

    """
    found = _averaged(name, given, task)
    if found is not None:
        return found
    library, _, rest = name.partition(".")
    plain = rest.rpartition(".")[2]
    if library not in _libraries():
        library, plain = "", name
    known = [one for one in _names().get(plain, ()) if library in ("", one.library)]
    if not known:
        return None
    known = [one for one in known if _is_for(one.key, task)] or known
    fitting = [one for one in known if one.takes(given)]
    most = max((len(one.arguments) for one in fitting), default=0)
    chosen = [one for one in fitting if len(one.arguments) == most] or known
    meanings: dict[str, tuple[str, ...]] = {}
    here = catalogue().named(plain.lower(), task)
    if not library and here is not None:
        # PyCM's AUC is not what is called auc here, and nobody sees which one was meant.
        meanings[here.key] = ("prevail",)
    for one in chosen:
        meanings[one.key] = (*meanings.get(one.key, ()), f"{one.library} as {one.written}")
    key = chosen[0].key if fitting and len(meanings) == 1 else None
    return Resolved(key, frozenset().union(*(one.consumed for one in chosen)), meanings)


def _averaged(name: str, given: Mapping[str, str], task: Task | None) -> Resolved | None:
    """The meaning of a scorer or an averaged function of scikit-learn for a task; None for other names."""
    match = None if given.get("multi_class") == "ovo" else _AVERAGED.fullmatch(name)
    average = (match["how"] or given.get("average")) if match else None
    ours = _SCORERS.get(name)
    if match is not None and average is not None:
        ours = _CALLED.get(match["of"], f"{{}}_{match['of']}").format(average)
    metric = catalogue().named(ours, task) if ours else None
    if metric is None:
        return None
    return Resolved(metric.key, frozenset({"average", "multi_class"}), {metric.key: (f"sklearn as {name}",)})


def _is_for(key: str, task: Task | None) -> bool:
    tasks = catalogue().by_name[key].card.tasks
    return task in tasks or (task is None and not {Task.BINARY, Task.MULTICLASS}.isdisjoint(tasks))


@cache
def _libraries() -> frozenset[str]:
    return frozenset(one.library for names in _names().values() for one in names)


@cache
def _names() -> Mapping[str, tuple[ForeignName, ...]]:
    """All names by what stands before the brackets, spaces as in `Overall_ACC`."""
    found: dict[str, tuple[ForeignName, ...]] = {}
    for name, one in _declared():
        found[name] = (*found.get(name, ()), one)
    return found


def _declared() -> Iterator[tuple[str, ForeignName]]:
    for metric in catalogue().metrics:
        for library, written in metric.card.elsewhere.items():
            match = _WRITTEN.fullmatch(written)
            pairs = [one.partition("=") for one in (match["arguments"] or "").split(",") if one] if match else []
            if match is None or not all(sign for _, sign, _ in pairs):
                # In words, such as a part of what the function gives.
                continue
            arguments = {name.strip(): value.strip().strip("\"'") for name, _, value in pairs}
            yield match["name"].replace(" ", "_"), ForeignName(library, arguments, metric.key, written)
