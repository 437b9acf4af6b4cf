"""Tasks of Celery within policies; needs `celery`.

@app.task(base=PolicyTask, policy=gear.policy("worker->mail", feature="digest"))
def digest(user): …
"""

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from celery import Task
from celery.exceptions import TaskPredicate

from switchgear.adapters.passing import passing
from switchgear.patterns import attempts
from switchgear.patterns.limits import NoTimeLeft
from switchgear.patterns.propagation import TIMEOUT_HEADER, Incoming, incoming, outgoing
from switchgear.patterns.rounds import Round
from switchgear.policies.policy import Policy
from switchgear.refusals import CircuitOpen, Refused

if TYPE_CHECKING:
    Base = Task[..., Any]
else:
    Base = Task

SENT_HEADER = "Switchgear-Sent-At"
REFUSALS_HEADER = "Switchgear-Refusals"
SPREAD = 0.2
"""Of a pause after a refusal, so that not all come back at once."""


class PolicyTask(Base):
    """Base of tasks whose body runs within `policy`, which asks its switch before.

    What fails is tried again by the policy's retry, but as a message that comes later: no worker
    sleeps, and a `Retry-After` and the budget hold. What was refused comes back after what a
    breaker says or `refused_seconds`, as often as need be and without counting as an attempt; with
    None it fails. All attempts of a task have one idempotency key. A fallback of the policy answers
    before anything is tried again; its deadline is that of one attempt.

    `is_awaited` says that who sends the task waits for its result: the deadline that holds there
    holds here too, also in the queue, and if something there tries again, nothing does here.
    Without it a task is nobody's haste.
    """

    abstract = True
    max_retries: int | None = None  # The policy decides.
    policy: Policy | None = None
    refused_seconds: float | None = 30.0
    is_awaited: bool = False
    _within: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The task in a worker; called directly, it is a function within its policy."""
        within = self._body()
        if self.request.called_directly:
            return within(*args, **kwargs)
        came = self._came()
        if came.is_over:
            raise NoTimeLeft(came.seconds or 0.0)
        with came:
            marker = None if attempts.active() is not None else self._marker()
            try:
                return self._attempt(marker, within, args, kwargs)
            except NoTimeLeft:
                raise
            except Refused as refusal:
                self._come_back(refusal)
                raise
            except TaskPredicate:
                raise
            except Exception as error:
                wait = None if marker is None else marker.after_error(error)
                if wait is None:
                    raise
                raise self.retry(exc=error, countdown=wait) from error

    def apply_async(
        self,
        args: Any = None,
        kwargs: Any = None,
        *more: Any,
        headers: dict[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        """As Celery's; what its sender waits for takes the deadline along."""
        if self.is_awaited and SENT_HEADER not in (headers or {}):
            carried: dict[str, Any] = outgoing()
            if TIMEOUT_HEADER in carried:
                carried[SENT_HEADER] = time.time()
            headers = {**(headers or {}), **carried}
        options["headers"] = headers
        return super().apply_async(args, kwargs, *more, **options)

    def _body(self) -> Callable[..., Any]:
        if self._within is None:
            policy = self.policy
            self._within = (
                self.run if policy is None else passing(policy, self.run, (TaskPredicate,))
            )
        return self._within

    def _attempt(
        self, marker: Round | None, within: Callable[..., Any], args: Any, kwargs: Any
    ) -> Any:
        if marker is None:
            return within(*args, **kwargs)
        marker.enter()
        try:
            return within(*args, **kwargs)
        finally:
            marker.leave()

    def _marker(self) -> Round | None:
        """Of this attempt, whose message may come again: then nothing tries again in here."""
        retry = None if self.policy is None else self.policy.retry
        if retry is None:
            return None
        marker = Round(retry)
        marker.number = self._number()
        marker.key = self.request.id
        return marker

    def _come_back(self, refusal: Refused) -> None:
        """Raises Celery's retry, unless a refusal is to be a failure here."""
        if self.refused_seconds is None:
            return
        seconds = self.refused_seconds
        if isinstance(refusal, CircuitOpen) and refusal.retry_after:
            seconds = refusal.retry_after
        headers = {**(self.request.headers or {}), REFUSALS_HEADER: self._refusals() + 1}
        countdown = seconds * (1 + SPREAD * random.random())  # noqa: S311 - no secret.
        raise self.retry(exc=refusal, countdown=countdown, headers=headers) from refusal

    def _came(self) -> Incoming:
        """What the sender said, less the time in the queue."""
        headers = dict(self.request.headers or {}) if self.is_awaited else {}
        said = {name: str(value) for name, value in headers.items() if isinstance(name, str)}
        seconds = incoming(said).seconds
        if seconds is not None:
            sent_at = headers.get(SENT_HEADER)
            queued = time.time() - sent_at if isinstance(sent_at, int | float) else 0.0
            said[TIMEOUT_HEADER] = str(int(max(seconds - max(queued, 0.0), 0.0) * 1000))
        return incoming(said)

    def _number(self) -> int:
        """Of this attempt, from 0."""
        return max(int(self.request.retries or 0) - self._refusals(), 0)

    def _refusals(self) -> int:
        said = (self.request.headers or {}).get(REFUSALS_HEADER, 0)
        return said if isinstance(said, int) else 0
