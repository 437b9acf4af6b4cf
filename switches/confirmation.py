"""Identity confirmation for actions on the global switch."""

from datetime import datetime

from django.http import HttpRequest
from rest_framework.request import Request

from controlplane.core.http.confirmation import require_fresh
from switches.scopes import GLOBAL


def require_confirmation(
    request: HttpRequest | Request, scope: str, now: datetime, *, next_url: str = ""
) -> None:
    """Raise :class:`ConfirmFirst` for the global switch unless the person confirmed recently."""
    if scope == GLOBAL.name:
        require_fresh(request, now, next_url=next_url)
