"""The catalogue of metrics, models and data sets, jobs, keys, webhooks, and how the service is."""

from typing import Any

from prevail.operations.asking import Asking, segment
from prevail.operations.naming import several
from prevail.results.listing import Facts, Listing
from prevail.wire.exchange import exchange, followed
from prevail.wire.steps import Call, Flow, Lost, Reply, operation


class Looking(Asking):
    """Operations that look at what there is."""

    @operation
    def metrics(self, /, word: str | None = None, **filters: Any) -> Flow[Listing]:
        """The metrics that the service knows, those with a word in them; names of other libraries are found too. With
        ``fields`` more of their cards, such as ``fields="key,formula"``.
        """
        data = yield from self._answered(Call("GET", "/v1/metrics", {"q": word, **filters}))
        return Listing(data["items"])

    @operation
    def metric(self, key: str, *, task: str | None = None) -> Flow[Facts]:
        """A metric: formula, range, when it has no value, and the effect of prevalence."""
        return (yield from self._facts("GET", f"/v1/metrics/{segment(key)}", task=task))

    @operation
    def recommend(self, /, *, classes: str, balanced: bool, **options: Any) -> Flow[Facts]:
        """Recommend metrics: ``classes`` is ``binary`` or ``multiclass``."""
        body = {"classes": classes, "balanced": balanced, **options}
        return (yield from self._facts("POST", "/v1/metrics/recommendations", body))

    @operation
    def models(self, *, limit: int | None = 1000) -> Flow[Listing]:
        """The models that have evaluations."""
        return (yield from self._listed("/v1/models", limit))

    @operation
    def datasets(self, *, limit: int | None = 1000) -> Flow[Listing]:
        """The data sets that have evaluations."""
        return (yield from self._listed("/v1/datasets", limit))

    @operation
    def model(self, name: str) -> Flow[Facts]:
        """Return the facts of a model: number of evaluations, versions, the newest evaluation."""
        return (yield from self._facts("GET", f"/v1/models/{segment(name)}"))

    @operation
    def dataset(self, name: str) -> Flow[Facts]:
        """Return the facts of a data set: number of evaluations, versions and splits, the newest evaluation."""
        return (yield from self._facts("GET", f"/v1/datasets/{segment(name)}"))

    @operation
    def delete_model(self, name: str, *, dry_run: bool = False) -> Flow[Facts]:
        """Delete all evaluations of a model, or count them. Comparisons and checks that used them stay as they are."""
        return (yield from self._facts("DELETE", f"/v1/models/{segment(name)}", dry_run=dry_run))

    @operation
    def delete_dataset(self, name: str, *, dry_run: bool = False) -> Flow[Facts]:
        """Delete all evaluations on a data set, or count them. Comparisons and checks of them stay as they are."""
        return (yield from self._facts("DELETE", f"/v1/datasets/{segment(name)}", dry_run=dry_run))

    @operation
    def wait(self, job: Facts | str, *, timeout: float | None = None) -> Flow[Facts]:
        """The result of a job, once there is one.

        Raises:
            JobFailed: it was cancelled, or has not ended in time; then it goes on.
            PrevailError: what it failed with.
        """
        if isinstance(job, Facts) and "status" not in job:
            return job  # the service has answered at once
        identifier = job if isinstance(job, str) else str(job["id"])
        ended = yield from followed(f"/v1/jobs/{segment(identifier)}", self.retries, timeout)
        return (yield from self._facts("GET", str(ended["result"])))

    @operation
    def job(self, identifier: str) -> Flow[Facts]:
        """Return the state of a job."""
        return (yield from self._facts("GET", f"/v1/jobs/{segment(identifier)}"))

    @operation
    def job_result(self, identifier: str) -> Flow[Facts]:
        """Return a result that is stored with its job and nowhere else."""
        return (yield from self._facts("GET", f"/v1/jobs/{segment(identifier)}/result"))

    @operation
    def jobs(self, /, *, limit: int | None = 1000, **filters: Any) -> Flow[Listing]:
        """The jobs, the latest first; with ``status`` only those in this state."""
        return (yield from self._listed("/v1/jobs", limit, **filters))

    @operation
    def cancel(self, identifier: str) -> Flow[None]:
        """Cancel a job."""
        yield from exchange(Call("DELETE", f"/v1/jobs/{segment(identifier)}"), self.retries)

    @operation
    def status(self) -> Flow[Facts]:
        """The version of the service that answers."""
        return (yield from self._facts("GET", "/version"))

    @operation
    def is_alive(self) -> Flow[bool]:
        """Does the service answer? It is asked once."""
        return (yield from _is_well("/healthz"))

    @operation
    def is_ready(self) -> Flow[bool]:
        """Can it serve, database included? It is asked once."""
        return (yield from _is_well("/readyz"))

    @operation
    def problem(self, code: str) -> Flow[Facts]:
        """Return the meaning of a problem's code, and its remedy."""
        return (yield from self._facts("GET", f"/problems/{segment(code)}"))

    @operation
    def usage(self) -> Flow[Facts]:
        """Return today's use of the project's quotas, and the time at which they begin anew."""
        return (yield from self._facts("GET", "/v1/usage"))

    @operation
    def create_key(self, /, name: str, scopes: list[str], **options: Any) -> Flow[Facts]:
        """Make a key; its text is answered this once."""
        return (yield from self._facts("POST", "/v1/keys", {"name": name, "scopes": scopes, **options}))

    @operation
    def keys(self, *, limit: int | None = 1000) -> Flow[Listing]:
        """The keys of the project, never their text."""
        return (yield from self._listed("/v1/keys", limit))

    @operation
    def key(self, identifier: str) -> Flow[Facts]:
        """A key, never its text."""
        return (yield from self._facts("GET", f"/v1/keys/{segment(identifier)}"))

    @operation
    def rotate_key(self, identifier: str, *, overlap_seconds: int = 0) -> Flow[Facts]:
        """Give a key another text; the one before stays good for some seconds."""
        path = f"/v1/keys/{segment(identifier)}/rotations"
        return (yield from self._facts("POST", path, {"overlap_seconds": overlap_seconds}))

    @operation
    def revoke_key(self, identifier: str) -> Flow[None]:
        """End a key for good."""
        yield from exchange(Call("DELETE", f"/v1/keys/{segment(identifier)}"), self.retries)

    @operation
    def put_webhook(self, name: str, url: str, events: list[str], *, secret: str | None = None) -> Flow[Facts]:
        """Register an address for ``evaluation.created``, ``gate.checked``, ``job.finished`` or ``model.changed``. The
        secret of a new webhook is answered only now.
        """
        body = {"url": url, "events": several(events, "events"), **({} if secret is None else {"secret": secret})}
        return (yield from self._facts("PUT", f"/v1/webhooks/{segment(name)}", body))

    @operation
    def webhooks(self, *, limit: int | None = 1000) -> Flow[Listing]:
        """The webhooks of the project, never their secrets."""
        return (yield from self._listed("/v1/webhooks", limit))

    @operation
    def webhook(self, name: str) -> Flow[Facts]:
        """A webhook, never its secret."""
        return (yield from self._facts("GET", f"/v1/webhooks/{segment(name)}"))

    @operation
    def delete_webhook(self, name: str) -> Flow[None]:
        """End a webhook. What it was still to be told is not sent."""
        yield from exchange(Call("DELETE", f"/v1/webhooks/{segment(name)}"), self.retries)

    @operation
    def deliveries(self, name: str, *, status: str | None = None, limit: int | None = 1000) -> Flow[Listing]:
        """List the deliveries of a webhook, the latest first; with ``status`` only those in this state, such as
        ``failed``.
        """
        return (yield from self._listed(f"/v1/webhooks/{segment(name)}/deliveries", limit, status=status))

    @operation
    def test_webhook(self, name: str) -> Flow[Facts]:
        """Send a test message to a webhook; `deliveries` says whether it arrived."""
        return (yield from self._facts("POST", f"/v1/webhooks/{segment(name)}/tests"))

    @operation
    def retry_delivery(self, name: str, identifier: str) -> Flow[Facts]:
        """Send a delivery again, whatever became of it."""
        path = f"/v1/webhooks/{segment(name)}/deliveries/{segment(identifier)}/retries"
        return (yield from self._facts("POST", path))

    @operation
    def audit(self, *, limit: int | None = 1000) -> Flow[Listing]:
        """List the changes in a project, the latest first."""
        return (yield from self._listed("/v1/audit", limit))


def _is_well(path: str) -> Flow[bool]:
    outcome: Reply | Lost = yield Call("GET", path)
    return isinstance(outcome, Reply) and outcome.status == 200
