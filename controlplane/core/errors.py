"""Domain errors, each with an HTTP status, a problem type and advice for the user."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

NO_DATABASE = (
    "The database does not respond. Check whether a change was made before you repeat it; with the "
    "same Idempotency-Key you can repeat it immediately."
)
"""Detail of a 503 after which it is unknown whether the change was committed."""


class DomainError(Exception):
    """Base class of errors that a client or user can act on; `detail` is a sentence for people."""

    status: ClassVar[int] = 400
    slug: ClassVar[str] = "bad-request"
    title: ClassVar[str] = "The request can't be carried out"

    def __init__(self, detail: str, **extra: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.extra = extra


class InvalidInput(DomainError):
    """Raised when fields are invalid; `errors` maps each field to its problems."""

    slug = "invalid-input"
    title = "Some fields are wrong"

    def __init__(self, errors: Mapping[str, Sequence[str]]) -> None:
        summary = "; ".join(f"{field}: {' '.join(texts)}" for field, texts in errors.items())
        super().__init__(summary, errors={field: list(texts) for field, texts in errors.items()})
        self.errors = self.extra["errors"]


class Unauthenticated(DomainError):
    status = 401
    slug = "unauthenticated"
    title = "Credentials are missing or invalid"


class Forbidden(DomainError):
    status = 403
    slug = "forbidden"
    title = "These credentials don't allow this"


class ConfirmFirst(Forbidden):
    """Raised if the user must first confirm their identity, on the page `confirm_url`."""

    slug = "confirm-first"
    title = "Confirm your identity"

    def __init__(self, confirm_url: str) -> None:
        super().__init__(
            "This action requires a recent sign-in. Confirm your identity at confirm_url, then"
            " repeat it.",
            confirm_url=confirm_url,
        )
        self.confirm_url = confirm_url


class NotFound(DomainError):
    status = 404
    slug = "not-found"
    title = "Not found"


class MethodNotAllowed(DomainError):
    status = 405
    slug = "method-not-allowed"
    title = "Method not allowed"

    def __init__(self, detail: str, *, allowed: Sequence[str] = ()) -> None:
        super().__init__(detail)
        self.allowed = allowed


class Conflict(DomainError):
    """Raised when the current state doesn't allow a change; `extra` describes the conflict."""

    status = 409
    slug = "conflict"
    title = "The request conflicts with the current state"


class TooSlow(DomainError):
    status = 408
    slug = "request-timeout"
    title = "The request did not arrive in time"


class TooLarge(DomainError):
    status = 413
    slug = "too-large"
    title = "The request body is too large"


class KeyReused(DomainError):
    status = 422
    slug = "idempotency-key-reused"
    title = "This idempotency key was used for another request"


class TooManyRequests(DomainError):
    status = 429
    slug = "too-many-requests"
    title = "Too many requests"

    def __init__(self, detail: str, *, retry_after: int) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class Unavailable(DomainError):
    status = 503
    slug = "unavailable"
    title = "A required component is not responding"

    def __init__(self, detail: str, *, retry_after: int = 5) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class Busy(Unavailable):
    """The server is overloaded; the client should repeat the request later."""

    title = "The server is busy"


class InternalError(DomainError):
    """An unexpected error; the log has its cause under the request's id."""

    status = 500
    slug = "internal-error"
    title = "Something went wrong on our side"
