"""Errors of requests, each with a stable code. ``app.api.problems`` writes them as problem+json."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self, TypeVar

_Understood = TypeVar("_Understood")


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with an input.

    Attributes:
        pointer: JSON pointer into the request, or the name of a parameter of the address.
        code: Stable; never changes meaning.
        detail: One sentence: what was expected, what came.
        suggestions: The names nearest to one that is unknown.
    """

    pointer: str
    code: str
    detail: str
    suggestions: tuple[str, ...] = ()


class DomainError(Exception):
    """Base of everything a caller did wrong or asked for in vain. ``code`` never changes meaning.

    Attributes:
        detail: One sentence: what was expected, what came.
        pointer: JSON pointer to the place in the request, or the name of a parameter, where one place is at fault.
        suggestions: The names nearest to one that is unknown.
        retry_after: Seconds after which a retry is sensible; None where it is not.
    """

    code: ClassVar[str] = "error"
    retry_after: int | None = None

    def __init__(self, detail: str, *, pointer: str | None = None, suggestions: Sequence[str] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.pointer = pointer
        self.suggestions = tuple(suggestions)


class InvalidInput(DomainError):
    """The request has the right form but cannot be evaluated; every fault that was found is listed."""

    code = "invalid_input"

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(faults[0].detail, pointer=faults[0].pointer)
        self.faults = tuple(faults)

    @classmethod
    def at(cls, pointer: str, code: str, detail: str, suggestions: Sequence[str] = ()) -> Self:
        """Make it of one fault."""
        return cls([Fault(pointer, code, detail, tuple(suggestions))])


class NotFound(DomainError):
    """The project has no such object."""

    code = "not_found"


class PreconditionFailed(DomainError):
    """The object does not satisfy the preconditions of the request (`If-Match`, `If-None-Match`)."""

    code = "precondition_failed"


class Unauthenticated(DomainError):
    """A valid API key is needed. ``presented`` says that one came."""

    code = "unauthenticated"

    def __init__(self, detail: str, *, presented: bool) -> None:
        super().__init__(detail)
        self.presented = presented


class Forbidden(DomainError):
    """The key is valid, but may not do this."""

    code = "forbidden"


class DataNotAllowed(Forbidden):
    """Data that a request names does not lie where the operator lets the service read."""

    code = "data_not_allowed"


class Later(DomainError):
    """A refusal for now: nothing was saved, and it can be tried again after ``retry_after`` seconds."""

    retry_after: int

    def __init__(self, detail: str, *, retry_after: int = 1) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class TooManyRequests(Later):
    """A key was used more often than it may be: so many ``times`` in ``window`` seconds."""

    code = "rate_limited"

    def __init__(self, detail: str, *, times: int, window: int, retry_after: int) -> None:
        super().__init__(detail, retry_after=retry_after)
        self.times, self.window = times, window


class QuotaUsedUp(TooManyRequests):
    """A key was used as often as it may be in a day."""

    code = "quota_used_up"


class ProjectQuotaUsedUp(QuotaUsedUp):
    """A project has used what it may in a day of evaluations or of seconds to compute. Nothing was saved."""

    code = "project_quota_used_up"


class StorageQuotaUsedUp(Later):
    """A project has sent as many bytes to be saved as it may in a day."""

    code = "storage_quota_used_up"


class IdempotencyKeyReused(DomainError):
    """The key belongs to another request."""

    code = "idempotency_key_reused"


class IdempotencyKeyInFlight(DomainError):
    """A request with the key is under way."""

    code = "idempotency_key_in_flight"
    retry_after = 1


class ResultDeleted(DomainError):
    """The stored result of the first request with this idempotency key has been deleted."""

    code = "result_deleted"


class ShownOnce(DomainError):
    """The answer to the first request with this idempotency key held a secret, which is not stored."""

    code = "shown_once"


class TooLarge(DomainError):
    """The request is larger than one request may be; the detail names the quantity that was counted, and its limit."""

    code = "too_large"


class BeyondMemory(TooLarge):
    """Data that a request names has more rows than are held in memory."""


class Overloaded(Later):
    """More is under way than the service takes."""

    code = "overloaded"


class TooManyJobs(Later):
    """More jobs of the project wait than may."""

    code = "too_many_jobs"


class TooManyWebhooks(DomainError):
    """The project has as many webhooks as it may; one has to go before another comes."""

    code = "too_many_webhooks"


class JobEnded(DomainError):
    """A job that is to be cancelled has ended already."""

    code = "job_ended"


class JobLost(DomainError):
    """Whoever worked on a job was lost each time it was tried."""

    code = "job_lost"


class DeadlinePassed(DomainError):
    """The computation took too long and was ended. Nothing was stored."""

    code = "deadline_passed"


class NotEnoughMemory(DomainError):
    """The computation needs more memory than one request may have. Nothing was stored."""

    code = "not_enough_memory"


class ProcessLost(DomainError):
    """The process that computed what was asked for ended under it. Nothing was saved; a retry is sensible."""

    code = "process_lost"
    retry_after = 1


class SpillFull(DomainError):
    """Rows beyond memory take more room in files than they may, or than there is. Nothing was saved."""

    code = "spill_full"


class ClusterUnavailable(DomainError):
    """The cluster that holds rows beyond memory cannot do what was asked for. Nothing was saved."""

    code = "cluster_unavailable"
    retry_after = 1


class SchemaOutdated(DomainError):
    """The database has not the schema of this release."""

    code = "schema_outdated"


class InvalidExpression(DomainError):
    """A metric expression does not parse or does not make sense. ``position`` counts characters from 0."""

    code = "invalid_expression"

    def __init__(
        self,
        detail: str,
        *,
        position: int | None = None,
        pointer: str | None = None,
        suggestions: Sequence[str] = (),
    ) -> None:
        super().__init__(detail, pointer=pointer, suggestions=suggestions)
        self.position = position


class InvalidExpressions(DomainError):
    """Several metric expressions of one request that are none; each has its pointer."""

    def __init__(self, errors: Sequence[InvalidExpression]) -> None:
        super().__init__(errors[0].detail, pointer=errors[0].pointer)
        self.errors = tuple(errors)


def all_understood(
    texts: Iterable[str], understand: Callable[[str], _Understood], pointer_to: Callable[[str], str]
) -> list[_Understood]:
    """Return the meaning of each metric expression, or refuse all those that have none at once.

    Raises:
        InvalidExpression: one of them is none; its pointer is that of the text.
        InvalidExpressions: several are.
    """
    found: list[_Understood] = []
    errors: list[InvalidExpression] = []
    for text in texts:
        try:
            found.append(understand(text))
        except InvalidExpression as error:
            error.pointer = pointer_to(text)
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise InvalidExpressions(errors)
    return found


class UnknownMetric(InvalidExpression):
    """There is no metric or function of that name; the nearest known ones are offered."""

    code = "unknown_metric"


class UnknownLabel(InvalidExpression):
    """The evaluation has no class of that label."""

    code = "unknown_label"

    def __init__(
        self, detail: str, *, known: Sequence[str], suggestions: Sequence[str] = (), position: int | None = None
    ) -> None:
        super().__init__(detail, suggestions=suggestions, position=position)
        self.known = tuple(known)


class InvalidParameter(InvalidExpression):
    """A metric does not take the parameter, or the parameter not the value."""

    code = "invalid_parameter"


class NotComparable(InvalidExpression):
    """The expression does not say which of two values is better."""

    code = "not_comparable"


class NoSamples(DomainError):
    """The question needs the samples of an evaluation, of which only the matrix is known."""

    code = "no_samples_kept"


class NeedsScores(DomainError):
    """The question is about probabilities or scores, and the input came without."""

    code = "needs_scores"


class NotForKind(DomainError):
    """The question has no meaning for this kind of input."""

    code = "not_for_this_kind"


class UnknownClass(DomainError):
    """Something of a class that there is not, or of no class where one has to be named."""

    code = "unknown_class"

    def __init__(self, detail: str, *, pointer: str = "class", suggestions: Sequence[str] = ()) -> None:
        super().__init__(detail, pointer=pointer, suggestions=suggestions)


class NoFigure(DomainError):
    """There is no such figure: this evaluation or comparison has not the values that it shows."""

    code = "no_figure"


class NotInstalled(DomainError):
    """The request needs an optional part of the service that is not installed. Nothing is wrong with the request."""

    code = "not_installed"


class CurveUndefined(DomainError):
    """The samples of an evaluation have no such curve."""

    code = "undefined_curve"


class NoRule(DomainError):
    """No decision rule satisfies the constraints."""

    code = "no_feasible_rule"


class IncomparableLabels(DomainError):
    """Two runs that are to be compared have different classes."""

    code = "different_labels"


class GateIsForOtherData(DomainError):
    """A gate is asked about an evaluation of other data than it applies to."""

    code = "gate_is_for_other_data"


class IncomparableRuns(DomainError):
    """Runs cannot be compared in the way asked for."""

    code = "incomparable_runs"


class OutOfReach(DomainError):
    """The computation would take minutes, or more of the service than one request may have."""

    code = "out_of_reach"
