"""Recent confirmation of a person's identity, required for high-impact actions.

The session stores the time of the confirmation. Signing in counts as a confirmation for
`CONFIRM_MINUTES`. Tokens, Slack and the shell have no session and need no confirmation.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode
from rest_framework.request import Request

from controlplane.core.errors import ConfirmFirst
from controlplane.core.http.permissions import get_http_request

KEY = "confirmed_at"
# Time to fill in a form that was opened while the confirmation was valid.
GRACE = timedelta(minutes=10)


def require_fresh(request: HttpRequest | Request, now: datetime, *, next_url: str = "") -> None:
    """Raise :class:`ConfirmFirst` unless the person has recently confirmed their identity.

    Requests by tokens and others without a session pass. A confirmation counts a little longer for
    writes, so that a form opened in time can be sent. After confirming, the person goes to
    `next_url`, by default the requested page or form.
    """
    plain = get_http_request(request)
    actor = getattr(plain, "actor", None)
    if actor is not None and actor.type != "user":
        return
    is_read = plain.method in {"GET", "HEAD"}
    limit = timedelta(minutes=settings.ENTRY.confirm_minutes) + (timedelta() if is_read else GRACE)
    at = plain.session.get(KEY)
    if not isinstance(at, int | float) or now.timestamp() - at > limit.total_seconds():
        # A form's action answers GET too, so the person can return to it.
        back = plain.get_full_path() if is_read else plain.path
        raise ConfirmFirst(f"{reverse('confirm')}?{urlencode({'next': next_url or back})}")


def record_confirmation(request: HttpRequest, at: float) -> None:
    """Record the time of the person's confirmation, in seconds since 1970."""
    request.session[KEY] = at
