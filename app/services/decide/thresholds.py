"""The decision rule that is best for a metric: a threshold for two classes, a weight per class for more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Annotated, Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from app.domain.asked import ExpressionText, Limits, PointsAtMost, Seed
from app.domain.division import divided
from app.domain.errors import InvalidExpression, InvalidInput, NoRule, NotComparable
from app.domain.expressions.expressions import parse, refuse_about_sample
from app.domain.inputs.kinds import inputs_of
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.multilabel import as_classes
from app.domain.inputs.samples import DecidedBy
from app.domain.members import LEFT_OUT, named, numbers, typed
from app.domain.slices import Places, places_of, refuse_unknown_slices, restricted
from app.domain.wording import chance, number, percent
from app.kernel.decide.class_weights import pareto_front, rules_on_grid, search_weights, simplex, simplex_size
from app.kernel.decide.rules import (
    Constraint,
    Corrected,
    FoundRule,
    NoFeasibleRule,
    Placed,
    Wanted,
    constraint_probabilities,
)
from app.kernel.decide.rules import Correction as Correction
from app.kernel.decide.thresholds import ThresholdRule, search_threshold
from app.kernel.metrics.expression import (
    Combination,
    Expression,
    OverSlices,
    Sliced,
    is_list,
    is_of_slices,
    of_probabilities,
)
from app.kernel.numerics.arrays import Array
from app.kernel.samples.curves import outstanding
from app.kernel.samples.scores import Scores
from app.services.estimands import Better, preference
from app.services.estimates.estimate import NoLimits
from app.services.estimates.run_data import RunData
from app.services.stored import scores_of

_MATRIX = typed(list[list[float]])


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleObjective:
    """The objective under the rule, and under the one that the evaluation was made with.

    Attributes:
        gain: How much better the rule is; negative only under constraints, or where folds had a threshold each.
        corrected: The value less what the search itself contributed.
    """

    expression: str
    value: float | None
    default: float | None
    better: Better
    gain: float | None
    corrected: Corrected | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleConstraint:
    """A constraint under both rules.

    Attributes:
        probability: Probability that the population meets it under the rule, corrected for chance on these samples;
            null where that is not known.
        required: With a guarantee, the value that the rule had to show on these samples.
    """

    metric: str
    value: float | None
    default: float | None
    probability: float | None
    required: float | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, eq=False)
class RuleCurve:
    """The objective at every threshold.

    Attributes:
        feasible: Are the constraints met there on these samples?
    """

    x: Array = field(metadata=typed(list[float]))
    y: Array = field(metadata=typed(list[float]))
    feasible: NDArray[np.bool_] = field(metadata=typed(list[bool]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RuleSurface:
    """The objective for every class weight of a grid, and the best trade-offs between the recalls.

    Attributes:
        steps: Weights are positive multiples of 1 / steps with sum 1.
        weights: P points, in the order of the labels.
        objective: At each point; `null` where it has no value.
        feasible: Are the constraints met there on these samples?
        recalls: At each point, in the order of the labels; `null` for a class without samples.
        front: The points that no other one beats in one recall without losing in another, by their places.
        best_index: The place of the feasible point with the best objective; `null` where there is none.
    """

    steps: int
    labels: Sequence[str]
    weights: Array = field(metadata=_MATRIX)
    objective: Sequence[float | None]
    feasible: NDArray[np.bool_] = field(metadata=typed(list[bool]))
    recalls: Sequence[Sequence[float | None]]
    front: Sequence[int]
    best_index: int | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelRules:
    """A threshold for each label.

    Attributes:
        thresholds: In the order of the labels, as an input takes them; `null` for a label without a rule.
        rules: By label; `null` where there is none.
        undefined: Why, by label.
    """

    evaluation_id: UUID | None
    thresholds: Sequence[float | None]
    rules: Mapping[str, "DecisionRule | None"]
    undefined: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecisionRule:
    """A decision rule, what it gains, and how much of that is due to chance.

    Attributes:
        evaluation_id: `null` for an input that is not saved.
        rule: `argmax`: of weight times probability.
        threshold: Two classes: predict the positive one from here on.
        low: The middle 95 % of the thresholds found in resamples.
        default_threshold: Of the run; `null` for scores without one, and for folds that had one each.
        weights: More classes: their geometric mean is 1.
        constraints_probability: Probability that the population meets all of the constraints; null where that is not
            known.
        guarantee: The probability with which a rule chosen like this one meets all constraints in the population.
        surface: Where it was asked for: all rules of a grid of class weights.
        note: What to expect on new data.
    """

    evaluation_id: UUID | None
    rule: DecidedBy
    threshold: float | None = None
    low: float | None = None
    high: float | None = None
    default_threshold: float | None = None
    weights: Mapping[str, float] | None = None
    objective: RuleObjective
    constraints: Sequence[RuleConstraint]
    constraints_probability: float | None
    guarantee: float | None = field(default=None, metadata=LEFT_OUT)
    confusion_matrix: Array = field(metadata=_MATRIX)
    default_confusion_matrix: NDArray[Any] = field(metadata=_MATRIX)
    curve: RuleCurve | None = None
    surface: RuleSurface | None = field(default=None, metadata=LEFT_OUT)
    note: str


# Most probabilities, times slices, for which a search for class weights is repeated in resamples: some seconds.
MOST_RESAMPLED = 60_000
_RESAMPLES, _WEIGHT_RESAMPLES, _MOST_WEIGHT_RESAMPLES = 100, 20, 100
_STARTS, _FEW_STARTS = 8, 3
# Numbers of classes for which a grid of weights is evaluated.
_FEWEST_ON_SURFACE, _MOST_ON_SURFACE = 3, 4
# Most points of a grid.
_MOST_POINTS = 5000
# Most points times probabilities of a grid: some seconds.
_MOST_DECIDED = 200_000_000


@dataclass(frozen=True, slots=True)
class Limit:
    """Bounds on an expression.

    Attributes:
        metric: A metric expression with one value.
        minimum: Lowest value allowed.
        maximum: Highest value allowed.
    """

    metric: ExpressionText
    minimum: float | None = field(default=None, metadata=named("min"))
    maximum: float | None = field(default=None, metadata=named("max"))

    def check(self) -> None:
        """Refuse what limits nothing, by ValueError."""
        if self.minimum is None and self.maximum is None:
            raise ValueError("expected min, max or both")


@dataclass(frozen=True, slots=True)
class Surface:
    """A grid of class weights of which all rules are wanted.

    Attributes:
        steps: Weights are positive multiples of 1 / steps with sum 1; 20 are 171 points of 3 classes.
    """

    steps: Annotated[int, Limits({"ge": 3, "le": 200})] = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleQuestion:
    """The objective and constraints of a decision rule.

    Attributes:
        objective: A metric expression with one value, such as `h_mean`.
        limits: All must be met.
        correction: How to correct the value for having been searched: by searching again in resamples.
        resamples: How many; 100 for a threshold; 20 for class weights, which have 100 at most.
        seed: Seed of the resamples.
        max_points: Points of the curve at most.
        guarantee: Two classes: choose only among thresholds at which the constraints are met in the population with
            this probability, such as 0.95.
        per_label: Labels: a threshold for each.
        surface: Three or four classes: the objective and the recalls for every class weight of a grid, and which of
            these rules no other one beats in one recall without losing in another.
    """

    objective: ExpressionText
    limits: Sequence[Limit] = field(default=(), metadata=named("constraints"))
    correction: Correction = Correction.OPTIMISM
    resamples: Annotated[int, Limits({"ge": 10, "le": 1000})] | None = None
    seed: Seed = 0
    max_points: PointsAtMost = 1000
    guarantee: Annotated[float, Limits({"ge": 0.5, "lt": 1})] | None = None
    per_label: bool = False
    surface: Surface | None = None


def rules_of(identifier: UUID | None, source: MatrixInput, question: RuleQuestion) -> DecisionRule | LabelRules:
    """The rule of an input, or that of each of its labels. Raises as `best_rule` does.

    Raises:
        InvalidInput: there are labels and one rule is asked for, or the other way round.
    """
    if question.per_label is not (source.task is not None):
        expected = "true: labels have a threshold each" if source.task is not None else "false: there are no labels"
        raise InvalidInput.at("/per_label", "rules_per_label", f"expected {expected}")
    if not question.per_label:
        return best_rule(identifier, source, question)
    rules: dict[str, DecisionRule | None] = dict.fromkeys(source.labels)
    undefined = {}
    for label in source.labels:
        try:
            rules[label] = best_rule(identifier, as_classes(source, label), question)
        except NoRule as error:
            undefined[label] = error.detail
    thresholds = [None if rule is None else rule.threshold for rule in rules.values()]
    return LabelRules(evaluation_id=identifier, thresholds=thresholds, rules=rules, undefined=undefined)


def best_rule(identifier: UUID | None, source: MatrixInput, question: RuleQuestion) -> DecisionRule:
    """The rule that is best for a metric among those that keep to all limits.

    Raises:
        InvalidExpression: the objective or a limit is none, or has a value per class.
        InvalidInput: a guarantee is asked for where none can be given, or more resamples than class weights can have.
        NotComparable: the objective does not say what is better, or it or a limit is about the sample.
        NoRule: none keeps to the limits, or the input has scores of more than two classes.
    """
    if source.is_grouped:
        question = replace(question, correction=Correction.NONE)
    objective = _scalar(question.objective, source, "/objective")
    better = preference(objective)
    if better is None or better.better is Better.NEAREST:
        raise NotComparable(
            f"{question.objective} cannot be an objective: neither a high nor a low value of it is better",
            pointer="/objective",
        )
    limits = [_scalar(limit.metric, source, f"/constraints/{i}/metric") for i, limit in enumerate(question.limits)]
    _check_guarantee(source, question, limits)
    _check_surface(source, question)
    wanted = Wanted(
        objective=_placed(objective, source, "/objective"),
        constraints=[
            Constraint(_placed(expression, source, f"/constraints/{i}/metric"), limit.minimum, limit.maximum)
            for i, (expression, limit) in enumerate(zip(limits, question.limits, strict=True))
        ],
        maximize=better.better is Better.HIGHER,
        correction=question.correction,
        seed=question.seed,
    )
    search = _Search(identifier, source, question, (objective, *limits), wanted)
    try:
        return search.by_threshold() if len(source.labels) == 2 else search.by_weights()
    except NoFeasibleRule as error:
        met = "no rule meets the constraints with a defined objective"
        raise NoRule(str(error) or (met if limits else f"{question.objective} has no value at any rule")) from error


def _check_guarantee(source: MatrixInput, question: RuleQuestion, limits: Sequence[Expression]) -> None:
    if question.guarantee is None:
        return
    if not question.limits:
        raise InvalidInput.at("/guarantee", "no_constraints", "expected constraints that are to be guaranteed")
    if len(source.labels) != 2:
        raise InvalidInput.at("/guarantee", "two_classes_only", "expected two classes: class weights have no guarantee")
    if not source.counts_independent:
        raise InvalidInput.at("/guarantee", "needs_independent_samples", "expected samples without weights and groups")
    if any(one.minimum is not None and one.maximum is not None for one in question.limits):
        raise InvalidInput.at("/guarantee", "needs_one_limit", "expected constraints of min or max, one for each limit")
    if any(map(is_of_slices, limits)):
        raise InvalidInput.at(
            "/guarantee",
            "needs_all_samples",
            "expected constraints of all samples; ?slice= of the address has guarantees of one slice alone",
        )


def _check_surface(source: MatrixInput, question: RuleQuestion) -> None:
    """A grid of class weights that can be looked at in reasonable time."""
    if question.surface is None:
        return
    steps, size = question.surface.steps, len(source.labels)
    where = "/surface/steps"
    if not _FEWEST_ON_SURFACE <= size <= _MOST_ON_SURFACE:
        raise InvalidInput.at(
            "/surface",
            "three_or_four_classes",
            f"expected {_FEWEST_ON_SURFACE} or {_MOST_ON_SURFACE} classes, got {size}: two have a threshold and its "
            "curve, of more classes a grid has too many points",
        )
    if steps < size:
        raise InvalidInput.at(
            where, "too_few_steps", f"expected {size} steps or more, so that every class has a weight"
        )
    samples = source.samples
    entries = size * (1 if samples is None else samples.size)
    most = min(_MOST_POINTS, _MOST_DECIDED // entries)
    if simplex_size(size, steps) > most:
        fitting = next(fewer for fewer in range(steps - 1, 0, -1) if simplex_size(size, fewer) <= most)
        raise InvalidInput.at(
            where,
            "surface_too_large",
            f"expected at most {fitting} steps, which are {simplex_size(size, fitting)} points, for so many samples "
            f"and classes; {steps} are {simplex_size(size, steps)}",
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    identifier: UUID | None
    source: MatrixInput
    question: RuleQuestion
    expressions: Sequence[Expression]
    wanted: Wanted

    def by_threshold(self) -> DecisionRule:
        question, source, scores = self.question, self.source, scores_of(self.source)
        default = source.facts.get("threshold", 0.5 if scores.are_probabilities else None)
        if isinstance(default, list):
            # Folds that had a threshold each.
            default = None
        found = search_threshold(
            scores,
            replace(self.wanted, resamples=question.resamples or _RESAMPLES),
            positive=1 if source.positive is None else source.positive,
            default_threshold=default,
            guarantee=question.guarantee,
        )
        low, high = found.limits
        required = found.required if question.guarantee is not None else ()
        own = {"threshold": found.threshold, "low": low, "high": high, "default_threshold": default}
        return self._answer(found, DecidedBy.THRESHOLD, required, **own, curve=self._curve(found))

    def _curve(self, found: ThresholdRule) -> RuleCurve:
        known = np.flatnonzero(np.isfinite(found.objectives))
        shown = known[outstanding(found.thresholds[known], found.objectives[known], self.question.max_points)]
        return RuleCurve(found.thresholds[shown], found.objectives[shown], found.feasible[shown])

    def by_weights(self) -> DecisionRule:
        question, scores = self.question, scores_of(self.source)
        if not scores.are_probabilities:
            raise NoRule("class weights multiply probabilities, and the input holds scores that are no probabilities")
        if question.resamples is not None and question.resamples > _MOST_WEIGHT_RESAMPLES:
            raise InvalidInput.at(
                "/resamples", "too_large", f"expected at most {_MOST_WEIGHT_RESAMPLES} for class weights"
            )
        slices = max(one.size for one in self.wanted.placed)
        small = scores.n_samples * scores.n_classes * slices <= MOST_RESAMPLED
        wanted = replace(
            self.wanted,
            correction=question.correction if small else Correction.NONE,
            resamples=question.resamples or _WEIGHT_RESAMPLES,
        )
        starts, sweeps = (_STARTS, 20) if small else (_FEW_STARTS, 5)
        found = search_weights(scores, wanted, starts=starts, sweeps=sweeps)
        weights = dict(zip(self.source.labels, found.weights.tolist(), strict=True))
        return self._answer(found, DecidedBy.ARGMAX, weights=weights, surface=self._surface(scores))

    def _surface(self, scores: Scores) -> RuleSurface | None:
        if self.question.surface is None:
            return None
        weights = simplex(scores.n_classes, self.question.surface.steps)
        values, recalls = rules_on_grid(scores, self.wanted, weights)
        return RuleSurface(
            steps=self.question.surface.steps,
            labels=self.source.labels,
            weights=weights,
            objective=numbers(values[0]),
            feasible=self.wanted.feasible(values),
            recalls=numbers(recalls),
            front=np.flatnonzero(pareto_front(recalls)).tolist(),
            best_index=self.wanted.best(values),
        )

    def _answer(
        self, found: FoundRule[Any], rule: DecidedBy, required: Sequence[Constraint] = (), **own: Any
    ) -> DecisionRule:
        """Return what every rule has, of either kind, and what it has of its ``own``."""
        question, wanted, run = self.question, self.wanted, RunData(self.source)
        (value, *held), (default, *others) = (
            numbers(np.array(values)) for values in (found.values, [run.of(one)[0] for one in self.expressions])
        )
        each, together = self._chances(found)
        # What is infinite has no optimism that could be told.
        corrected = found.corrected if found.corrected and isfinite(found.corrected.value) else None
        gain = None
        if value is not None and default is not None:
            gain = value - default if wanted.maximize else default - value
        shown = [one.maximum if one.minimum is None else one.minimum for one in required]
        return DecisionRule(
            evaluation_id=self.identifier,
            rule=rule,
            objective=RuleObjective(
                expression=question.objective,
                value=value,
                default=default,
                better=Better.HIGHER if wanted.maximize else Better.LOWER,
                gain=gain,
                corrected=corrected,
            ),
            constraints=[
                RuleConstraint(metric=limit.metric, value=value, default=other, probability=chance, required=needed)
                for limit, value, other, chance, needed in zip(
                    question.limits, held, others, each, shown or [None] * len(held), strict=True
                )
            ],
            constraints_probability=together,
            guarantee=question.guarantee,
            confusion_matrix=found.counts,
            default_confusion_matrix=self.source.counts,
            note=" ".join(self._notes(found, corrected, together)),
            **own,
        )

    def _chances(self, found: FoundRule[Any]) -> tuple[Sequence[float | None], float | None]:
        """Return the probabilities that the population meets each constraint, and all of them."""
        constraints, again = self.wanted.constraints, found.again
        sliced = any(map(is_of_slices, self.expressions[1:]))
        if not constraints or sliced or again is None or not self.source.counts_independent:
            return [None] * len(constraints), None
        return constraint_probabilities(found.counts, constraints, again.optimism, self.question.seed)

    def _notes(self, found: FoundRule[Any], corrected: Corrected | None, together: float | None) -> list[str]:
        notes = ["The rule was chosen on the samples that its value is computed from, so the value is optimistic."]
        if corrected is None:
            infinite = "It is not corrected: it is infinite or undefined under this rule, or in resamples."
            notes.append(infinite if found.corrected else self._why_not_corrected())
        else:
            notes.append(
                f"The same search in {corrected.resamples} resamples puts the optimism at "
                f"{number(corrected.optimism)}: expect about {number(corrected.value)} on new data of the same "
                "kind."
            )
        if self.question.guarantee is not None:
            notes.append(
                "A rule chosen in this way meets all of the constraints in the population in at least "
                f"{percent(self.question.guarantee, None)} of the cases."
            )
        elif together is not None:
            notes.append(
                "The constraints are met on these samples; that they are in the population has a probability of about "
                f"{chance(together)}. A guarantee can be asked for."
            )
        elif self.wanted.constraints:
            boundless = found.again is not None and np.isnan(found.again.optimism).any()
            notes.append(
                "The constraints are met on these samples; how likely they are in the population is not known"
                + (", as one is infinite in all resamples." if boundless else ".")
            )
        return notes

    def _why_not_corrected(self) -> str:
        if self.source.is_grouped:
            return (
                "It is not corrected: the samples come in groups, and resampling single samples would show too little "
                "optimism."
            )
        if self.question.correction is Correction.NONE:
            return "It is not corrected, as asked."
        return (
            "Searching again in resamples would take too long on so many samples or slices; the more samples there "
            "are, the less there is to correct."
        )


def _scalar(text: str, source: MatrixInput, pointer: str) -> Expression:
    try:
        expression = parse(text, source.labels, source.positive, inputs=inputs_of(source), sliceable=True)
        refuse_unknown_slices(expression, source)
        if of_probabilities(expression):
            raise InvalidExpression(f"{text} does not depend on what is decided: name a metric of the confusion matrix")
        if is_list(expression):
            raise InvalidExpression(f"{text} has one value per class: name a class, or take the mean or the minimum")
        refuse_about_sample(expression, text, pointer=pointer)
    except InvalidExpression as error:
        error.pointer = pointer
        raise
    return expression


def _placed(expression: Expression, source: MatrixInput, pointer: str) -> Placed:
    """An expression with the samples that it, or each of its slices, is of.

    Raises:
        InvalidInput: a slice has no samples.
        NoRule: too few slices have enough of them.
    """
    samples = source.samples
    if not is_of_slices(expression) or samples is None:
        return Placed(expression)

    def place(expression: Expression, places: Places) -> Placed:
        some = restricted(source, places)
        if isinstance(expression, Sliced):
            return place(expression.part, places[places_of(some, expression.where, pointer)])
        if isinstance(expression, OverSlices):
            parts, _ = divided(some, expression.by, expression.fewest)
            if len(parts) < 1 + (expression.card.ends is not None):
                raise NoRule(f"{expression.function} over {expression.by}: {NoLimits.FEW_SLICES}", pointer=pointer)
            return Placed(expression, parts=[place(expression.part, places[one.places]) for one in parts])
        if isinstance(expression, Combination) and is_of_slices(expression):
            return Placed(expression, parts=[place(part, places) for part in expression.values(len(source.labels))])
        inside = np.zeros(samples.size, dtype=np.bool_)
        inside[places] = True
        return Placed(expression, inside)

    return place(expression, np.arange(samples.size))
