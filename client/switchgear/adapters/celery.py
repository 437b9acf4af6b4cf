"""Celery tasks within policies; needs `celery`.

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

from switchgear.adapters.control_flow import pass_through
from switchgear.decorators import is_coroutine_function
from switchgear.patterns import retried_calls
from switchgear.patterns.propagation import TIMEOUT_HEADER, IncomingRequest, incoming, outgoing
from switchgear.patterns.retry_state import RetryCallState
from switchgear.patterns.timeout_errors import NoTimeLeft
from switchgear.policies.policy import Policy
from switchgear.refusals import CircuitOpen, Refused, refusal_in

if TYPE_CHECKING:
    Base = Task[..., Any]
else:
    Base = Task

SENT_HEADER = "Switchgear-Sent-At"
REFUSALS_HEADER = "Switchgear-Refusals"
RETRIES_HEADER = "Switchgear-Retries"
BODY_RUNNING = "switchgear_begun"
"""Attribute set on a Celery request while the task's body runs. If the body calls its own task, the
call is then a plain function call."""
REFUSAL_JITTER = 0.2
"""Maximum random extension of the pause after a refusal, as a fraction of the pause."""


class PolicyTask(Base):
    """Base class of tasks whose body runs within `policy`, including its kill switch.

    A failed task is sent again as a new message, as the policy's retry decides, so no worker
    sleeps. All attempts of a task have one idempotency key; `Retry-After` and the retry budget
    apply.

    A refused task is sent again, too, as often as necessary and without counting as an attempt:
    when the breaker may admit a call or, if that time is unknown, after `refused_seconds`. If
    `refused_seconds` is None, the refused task fails.

    The policy's fallback applies before its retry, and its deadline to each attempt. Celery's soft
    time limit counts as a timeout, and is neither retried nor answered by the fallback. Celery's
    `max_retries` applies only to retries that the body or `autoretry_for` requests. Eager tasks are
    retried without a pause and fail when refused.

    `is_awaited` declares that the sender waits for the result. Then the task ends by the sender's
    deadline, which includes the time in the queue, and does not retry if the sender does.
    """

    abstract = True
    policy: Policy | None = None
    refused_seconds: float | None = 30.0
    is_awaited: bool = False
    _wrapped: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the task body within its policy, in a worker or as a direct call."""
        request, body = self.request, self._wrapped_run()
        if request.called_directly or getattr(request, BODY_RUNNING, False):
            return self._call_directly(body, args, kwargs)
        setattr(request, BODY_RUNNING, True)
        limits = self._incoming_limits()
        if limits.is_over:
            raise NoTimeLeft(limits.seconds or 0.0)
        with limits:
            marker = None if retried_calls.find_active() is not None else self._make_retry_state()
            try:
                return self._attempt(marker, body, args, kwargs)
            except (TaskPredicate, SoftTimeLimitExceeded):
                raise
            except Exception as error:
                refusal = refusal_in(error)
                if refusal is not None:
                    self._retry_refused(refusal)
                    raise
                wait = None if marker is None else marker.after_error(error)
                if wait is None:
                    raise
                raise self._retry_later(error, wait, RETRIES_HEADER) from error

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
        """Retry like Celery's method; `max_retries` limits only retries requested by the body."""
        if options.get("headers"):
            options["headers"] = {**self._retry_counts(), **options["headers"]}
        most = self.max_retries if max_retries is None else max_retries
        if most is not None:
            most += sum(self._retry_counts().values())
        try:
            return super().retry(args, kwargs, exc, throw, eta, countdown, most, **options)
        finally:
            # Celery stores the argument in this attribute, which `autoretry_for` reads.
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
        """Send the task like Celery's method; with `is_awaited`, add the sender's deadline."""
        if self.is_awaited and SENT_HEADER not in (headers or {}):
            carried: dict[str, Any] = outgoing()
            if TIMEOUT_HEADER in carried:
                carried[SENT_HEADER] = time.time()
            headers = {**(headers or {}), **carried}
        options["headers"] = headers
        return super().apply_async(args, kwargs, *more, **options)

    def _call_directly(self, body: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run the body as a plain function call, with a new Celery request for this call."""
        _task_stack.push(self)
        self.push_request(args=args, kwargs=kwargs, called_directly=True)
        try:
            return body(*args, **kwargs)
        finally:
            self.pop_request()
            _task_stack.pop()

    def _wrapped_run(self) -> Callable[..., Any]:
        if self._wrapped is None:
            policy = self.policy
            if is_coroutine_function(self.run):  # Celery would not await the coroutine.
                raise TypeError(f"{self.name} is a coroutine function, which Celery can't run")
            self._wrapped = (
                self.run if policy is None else pass_through(policy, self.run, (TaskPredicate,))
            )
        return self._wrapped

    def _attempt(
        self, marker: RetryCallState | None, body: Callable[..., Any], args: Any, kwargs: Any
    ) -> Any:
        if marker is None:
            return body(*args, **kwargs)
        marker.enter()
        try:
            return body(*args, **kwargs)
        finally:
            marker.leave()

    def _make_retry_state(self) -> RetryCallState | None:
        retry = None if self.policy is None else self.policy.retry
        if retry is None:
            return None
        marker = RetryCallState(retry)
        marker.number = self._retry_counts()[RETRIES_HEADER]
        marker.key = self.request.id
        return marker

    def _retry_refused(self, refusal: Refused) -> None:
        """Raise Celery's retry after a refusal; return if the task must fail instead.

        An eager task fails: its retries would run and be refused at once, until the stack is full.
        """
        is_late = isinstance(refusal, NoTimeLeft)
        if self.refused_seconds is None or self.request.is_eager or is_late:
            return
        seconds = self.refused_seconds
        if isinstance(refusal, CircuitOpen) and refusal.retry_after:
            seconds = refusal.retry_after
        countdown = seconds * (1 + REFUSAL_JITTER * random.random())  # noqa: S311 - no secret.
        raise self._retry_later(refusal, countdown, REFUSALS_HEADER) from refusal

    def _retry_later(self, error: Exception, seconds: float, header: str) -> Any:
        """Send the task again after `seconds` by Celery's retry.

        The message header `header` counts such retries, and is increased by one.
        """
        counted = self._retry_counts()
        headers = {**(self.request.headers or {}), **counted, header: counted[header] + 1}
        most = int(self.request.retries or 0) + 1  # `max_retries` does not apply.
        return self.retry(exc=error, countdown=seconds, headers=headers, max_retries=most)

    def _incoming_limits(self) -> IncomingRequest:
        """Return the sender's time limit, reduced by the task's time in the queue."""
        headers = dict(self.request.headers or {}) if self.is_awaited else {}
        texts = {name: str(value) for name, value in headers.items() if isinstance(name, str)}
        seconds = incoming(texts).seconds
        if seconds is not None:
            sent_at = headers.get(SENT_HEADER)
            queued = time.time() - sent_at if isinstance(sent_at, int | float) else 0.0
            texts[TIMEOUT_HEADER] = str(int(max(seconds - max(queued, 0.0), 0.0) * 1000))
        return incoming(texts, trusts_attempt=True)

    def _retry_counts(self) -> dict[str, int]:
        headers = self.request.headers or {}
        counts = {name: headers.get(name, 0) for name in (RETRIES_HEADER, REFUSALS_HEADER)}
        return {name: n if isinstance(n, int) else 0 for name, n in counts.items()}
