"""Errors of requests, each with a stable code. ``app.api.problems`` writes them as problem+json."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Self, TypeVar

_Understood = TypeVar("_Understood")
_Found = TypeVar("_Found")


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


def in_pointer(name: str) -> str:
    """A name that somebody gave, as a part of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


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

    def __init_subclass__(cls, code: str | None = None) -> None:
        """Declare an error; without a code it has that of its base."""
        cls.code = code or cls.code

    def __init__(self, detail: str, *, pointer: str | None = None, suggestions: Sequence[str] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.pointer = pointer
        self.suggestions = tuple(suggestions)


class Faulty(DomainError):
    """Something is wrong with the request; every fault that was found is listed."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(faults[0].detail, pointer=faults[0].pointer)
        self.faults = tuple(faults)

    @classmethod
    def at(cls, pointer: str, code: str, detail: str, suggestions: Sequence[str] = ()) -> Self:
        """Make it of one fault."""
        return cls([Fault(pointer, code, detail, tuple(suggestions))])


class InvalidInput(Faulty, code="invalid_input"):
    """The request has the right form but cannot be evaluated."""


@contextmanager
def moved_faults(moved: Callable[[Fault], Fault]) -> Iterator[None]:
    """Tell faults of what is done within as ``moved`` has them."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput([moved(fault) for fault in error.faults]) from None


class NotFound(DomainError, code="not_found"):
    """The project has no such object."""

    @classmethod
    def unless(cls, found: _Found | None, what: str) -> _Found:
        """Return what was found. Raises this where it is None, or False: there is no such thing."""
        if found is None or found is False:
            raise cls(f"there is no {what}")
        return found


class PreconditionFailed(DomainError, code="precondition_failed"):
    """The object does not satisfy the preconditions of the request (`If-Match`, `If-None-Match`)."""


class Unauthenticated(DomainError, code="unauthenticated"):
    """A valid API key is needed. ``presented`` says that one came."""

    def __init__(self, detail: str, *, presented: bool) -> None:
        super().__init__(detail)
        self.presented = presented


class Forbidden(DomainError, code="forbidden"):
    """The key is valid, but may not do this."""


class DataNotAllowed(Forbidden, code="data_not_allowed"):
    """Data that a request names does not lie where the operator lets the service read."""


class Later(DomainError):
    """A refusal for now: nothing was saved, and it can be tried again after ``retry_after`` seconds."""

    retry_after: int

    def __init__(self, detail: str, *, retry_after: int = 1) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class TooManyRequests(Later, code="rate_limited"):
    """A key was used more often than it may be: so many ``times`` in ``window`` seconds."""

    def __init__(self, detail: str, *, times: int, window: int, retry_after: int) -> None:
        super().__init__(detail, retry_after=retry_after)
        self.times, self.window = times, window


class QuotaUsedUp(TooManyRequests, code="quota_used_up"):
    """A key was used as often as it may be in a day."""


class ProjectQuotaUsedUp(QuotaUsedUp, code="project_quota_used_up"):
    """A project has used what it may in a day of evaluations or of seconds to compute. Nothing was saved."""


class StorageQuotaUsedUp(Later, code="storage_quota_used_up"):
    """A project has sent as many bytes to be saved as it may in a day."""


class IdempotencyKeyReused(DomainError, code="idempotency_key_reused"):
    """The key belongs to another request."""


class IdempotencyKeyInFlight(DomainError, code="idempotency_key_in_flight"):
    """A request with the key is under way."""

    retry_after = 1


class ResultDeleted(DomainError, code="result_deleted"):
    """The stored result of the first request with this idempotency key has been deleted."""


class ShownOnce(DomainError, code="shown_once"):
    """The answer to the first request with this idempotency key held a secret, which is not stored."""


class TooLarge(DomainError, code="too_large"):
    """The request is larger than one request may be; the detail names the quantity that was counted, and its limit."""


class BeyondMemory(TooLarge):
    """Data that a request names has more rows than are held in memory."""


class Overloaded(Later, code="overloaded"):
    """More is under way than the service takes."""


class StoreError(Later):
    """The store cannot do it now."""


class StoreUnavailableError(StoreError, code="database_unavailable"):
    """The store did not answer. Whether a write under way was saved is unknown."""

    def __init__(self, detail: str = "the database does not answer; try again shortly") -> None:
        super().__init__(detail)


class StoreFullError(StoreError, code="no_space"):
    """The file system of the store is full. Nothing was saved, and somebody has to make space first."""

    def __init__(self, detail: str = "no space left where the database keeps its files; nothing was saved") -> None:
        super().__init__(detail, retry_after=10)


class TooManyJobs(Later, code="too_many_jobs"):
    """More jobs of the project wait than may."""


class TooManyWebhooks(DomainError, code="too_many_webhooks"):
    """The project has as many webhooks as it may; one has to go before another comes."""


class JobEnded(DomainError, code="job_ended"):
    """A job that is to be cancelled has ended already."""


class JobLost(DomainError, code="job_lost"):
    """Whoever worked on a job was lost each time it was tried."""


class DeadlinePassed(DomainError, code="deadline_passed"):
    """The computation took too long and was ended. Nothing was stored."""


class NotEnoughMemory(DomainError, code="not_enough_memory"):
    """The computation needs more memory than one request may have. Nothing was stored."""


class ProcessLost(DomainError, code="process_lost"):
    """The process that computed what was asked for ended under it. Nothing was saved; a retry is sensible."""

    retry_after = 1


class SpillFull(DomainError, code="spill_full"):
    """Rows beyond memory take more room in files than they may, or than there is. Nothing was saved."""


class ClusterUnavailable(DomainError, code="cluster_unavailable"):
    """The cluster that holds rows beyond memory cannot do what was asked for. Nothing was saved."""

    retry_after = 1


class SchemaOutdated(DomainError, code="schema_outdated"):
    """The database has not the schema of this release."""


class InvalidExpression(DomainError, code="invalid_expression"):
    """A metric expression does not parse or does not make sense. ``position`` counts characters from 0."""

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


class UnknownMetric(InvalidExpression, code="unknown_metric"):
    """There is no metric or function of that name; the nearest known ones are offered."""


class UnknownLabel(InvalidExpression, code="unknown_label"):
    """The evaluation has no class of that label."""

    def __init__(
        self, detail: str, *, known: Sequence[str], suggestions: Sequence[str] = (), position: int | None = None
    ) -> None:
        super().__init__(detail, suggestions=suggestions, position=position)
        self.known = tuple(known)


class InvalidParameter(InvalidExpression, code="invalid_parameter"):
    """A metric does not take the parameter, or the parameter not the value."""


class NotComparable(InvalidExpression, code="not_comparable"):
    """The expression does not say which of two values is better."""


class NoSamples(DomainError, code="no_samples_kept"):
    """The question needs the samples of an evaluation, of which only the matrix is known."""


class NeedsScores(DomainError, code="needs_scores"):
    """The question is about probabilities or scores, and the input came without."""


class NotForKind(DomainError, code="not_for_this_kind"):
    """The question has no meaning for this kind of input."""


class UnknownClass(DomainError, code="unknown_class"):
    """Something of a class that there is not, or of no class where one has to be named."""

    def __init__(self, detail: str, *, pointer: str = "class", suggestions: Sequence[str] = ()) -> None:
        super().__init__(detail, pointer=pointer, suggestions=suggestions)


class NoFigure(DomainError, code="no_figure"):
    """There is no such figure: this evaluation or comparison has not the values that it shows."""


class NotInstalled(DomainError, code="not_installed"):
    """The request needs an optional part of the service that is not installed. Nothing is wrong with the request."""


class CurveUndefined(DomainError, code="undefined_curve"):
    """The samples of an evaluation have no such curve."""


class NoRule(DomainError, code="no_feasible_rule"):
    """No decision rule satisfies the constraints."""


class IncomparableLabels(DomainError, code="different_labels"):
    """Two runs that are to be compared have different classes."""


class GateIsForOtherData(DomainError, code="gate_is_for_other_data"):
    """A gate is asked about an evaluation of other data than it applies to."""


class IncomparableRuns(DomainError, code="incomparable_runs"):
    """Runs cannot be compared in the way asked for."""


class OutOfReach(DomainError, code="out_of_reach"):
    """The computation would take minutes, or more of the service than one request may have."""
