"""Tasks of Celery within policies; needs `celery`.

@app.task(base=PolicyTask, policy=gear.policy("worker->mail", feature="digest"))
def digest(user): …
"""

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from celery import Task
from celery._state import _task_stack  # type: ignore[attr-defined]  # As Celery's own `__call__`.
from celery.exceptions import SoftTimeLimitExceeded, TaskPredicate

from switchgear.adapters.passing import passing
from switchgear.patterns import retried_calls
from switchgear.patterns.propagation import TIMEOUT_HEADER, IncomingRequest, incoming, outgoing
from switchgear.patterns.retry_state import RetryCallState
from switchgear.patterns.time_limits import NoTimeLeft
from switchgear.policies.policy import Policy
from switchgear.refusals import CircuitOpen, Refused, refusal_in
from switchgear.wrapping import is_coroutine_function

if TYPE_CHECKING:
    Base = Task[..., Any]
else:
    Base = Task

SENT_HEADER = "Switchgear-Sent-At"
REFUSALS_HEADER = "Switchgear-Refusals"
RETRIES_HEADER = "Switchgear-Retries"
BEGUN = "switchgear_begun"
"""On a request whose body runs: whoever calls the task in there calls a function."""
SPREAD = 0.2
"""Of a pause after a refusal, so that not all come back at once."""


class PolicyTask(Base):
    """Base of tasks whose body runs within `policy`, which asks its switch before.

    What fails is tried again by the policy's retry, but as a message that comes later: no worker
    sleeps, and a `Retry-After` and the budget hold. What was refused comes back after what a
    breaker says or `refused_seconds`, as often as need be and without counting as an attempt; with
    None it fails. All attempts of a task have one idempotency key. A fallback of the policy answers
    before anything is tried again; its deadline is that of one attempt. Celery's soft time limit
    counts as a timeout, and is neither answered for nor tried again.

    Celery's `max_retries` is for what the body or `autoretry_for` asks for: neither the policy's
    retries nor refusals count for it. Where tasks are run eagerly there is no later: retries have
    no pause, and what is refused fails.

    `is_awaited` says that who sends the task waits for its result: the deadline that holds there
    holds here too, also in the queue, and if something there tries again, nothing does here.
    Without it a task is nobody's haste.
    """

    abstract = True
    policy: Policy | None = None
    refused_seconds: float | None = 30.0
    is_awaited: bool = False
    _within: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The task in a worker; called directly, it is a function within its policy."""
        request, within = self.request, self._body()
        if request.called_directly or getattr(request, BEGUN, False):
            return self._directly(within, args, kwargs)
        setattr(request, BEGUN, True)
        came = self._came()
        if came.is_over:
            raise NoTimeLeft(came.seconds or 0.0)
        with came:
            marker = None if retried_calls.find_active() is not None else self._marker()
            try:
                return self._attempt(marker, within, args, kwargs)
            except (TaskPredicate, SoftTimeLimitExceeded):
                raise
            except Exception as error:
                refusal = refusal_in(error)
                if refusal is not None:
                    self._come_back(refusal)
                    raise
                wait = None if marker is None else marker.after_error(error)
                if wait is None:
                    raise
                raise self._again(error, wait, RETRIES_HEADER) from error

    def retry(
        self,
        args: Any = None,
        kwargs: Any = None,
        exc: Any = None,
        throw: bool = True,
        eta: Any = None,
        countdown: float | None = None,
        max_retries: int | None = None,
        **options: Any,
    ) -> Any:
        """As Celery's: for what the body asks for, and of that alone `max_retries` counts."""
        if options.get("headers"):
            options["headers"] = {**self._counted(), **options["headers"]}
        most = self.max_retries if max_retries is None else max_retries
        if most is not None:
            most += sum(self._counted().values())
        try:
            return super().retry(args, kwargs, exc, throw, eta, countdown, most, **options)
        finally:
            # Celery keeps there what it was given, for `autoretry_for`.
            vars(self).pop("override_max_retries", None)
            if max_retries is not None:
                self.override_max_retries = max_retries

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

    def _directly(self, within: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """With a request of its own: no message, also within the body of one."""
        _task_stack.push(self)
        self.push_request(args=args, kwargs=kwargs, called_directly=True)
        try:
            return within(*args, **kwargs)
        finally:
            self.pop_request()
            _task_stack.pop()

    def _body(self) -> Callable[..., Any]:
        if self._within is None:
            policy = self.policy
            if is_coroutine_function(self.run):  # Nobody would await what it gives.
                raise TypeError(f"{self.name} is a coroutine function, which Celery can't run")
            self._within = (
                self.run if policy is None else passing(policy, self.run, (TaskPredicate,))
            )
        return self._within

    def _attempt(
        self, marker: RetryCallState | None, within: Callable[..., Any], args: Any, kwargs: Any
    ) -> Any:
        if marker is None:
            return within(*args, **kwargs)
        marker.enter()
        try:
            return within(*args, **kwargs)
        finally:
            marker.leave()

    def _marker(self) -> RetryCallState | None:
        """Of this attempt, whose message may come again: then nothing tries again in here."""
        retry = None if self.policy is None else self.policy.retry
        if retry is None:
            return None
        marker = RetryCallState(retry)
        marker.number = self._counted()[RETRIES_HEADER]
        marker.key = self.request.id
        return marker

    def _come_back(self, refusal: Refused) -> None:
        """Raises Celery's retry, unless a refusal is to be a failure here. Run eagerly it would
        come back at once, and be refused until the stack is full."""
        is_late = isinstance(refusal, NoTimeLeft)
        if self.refused_seconds is None or self.request.is_eager or is_late:
            return
        seconds = self.refused_seconds
        if isinstance(refusal, CircuitOpen) and refusal.retry_after:
            seconds = refusal.retry_after
        countdown = seconds * (1 + SPREAD * random.random())  # noqa: S311 - no secret.
        raise self._again(refusal, countdown, REFUSALS_HEADER) from refusal

    def _again(self, error: Exception, seconds: float, header: str) -> Any:
        """Raises Celery's retry, as one more of those that `header` counts."""
        counted = self._counted()
        headers = {**(self.request.headers or {}), **counted, header: counted[header] + 1}
        most = int(self.request.retries or 0) + 1  # Whatever `max_retries` says.
        return self.retry(exc=error, countdown=seconds, headers=headers, max_retries=most)

    def _came(self) -> IncomingRequest:
        """What the sender said, less the time in the queue."""
        headers = dict(self.request.headers or {}) if self.is_awaited else {}
        said = {name: str(value) for name, value in headers.items() if isinstance(name, str)}
        seconds = incoming(said).seconds
        if seconds is not None:
            sent_at = headers.get(SENT_HEADER)
            queued = time.time() - sent_at if isinstance(sent_at, int | float) else 0.0
            said[TIMEOUT_HEADER] = str(int(max(seconds - max(queued, 0.0), 0.0) * 1000))
        return incoming(said, trusts_attempt=True)

    def _counted(self) -> dict[str, int]:
        """How often its message came again for the policy's retry, and after a refusal."""
        headers = self.request.headers or {}
        said = {name: headers.get(name, 0) for name in (RETRIES_HEADER, REFUSALS_HEADER)}
        return {name: n if isinstance(n, int) else 0 for name, n in said.items()}
