"""Search, filters and facts of the list of people."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from allauth.mfa.models import Authenticator
from django.core.paginator import Paginator
from django.db.models import Exists, Max, OuterRef, Q, QuerySet

from controlplane.accounts.authentication.factors import SECOND
from controlplane.accounts.models.people import User
from controlplane.accounts.models.tokens import Token
from controlplane.core.roles import Role

ON_A_PAGE = 50
MAX_SEARCH_LENGTH = 200


def page(asked: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """People by name, `?q=` in names and addresses, `?role=`, `?state=deactivated`."""
    search = asked.get("q", "").replace("\x00", "").strip()[:MAX_SEARCH_LENGTH]
    role = asked.get("role", "")
    state = asked.get("state", "")
    found = User.objects.filter(is_active=state != "deactivated")
    if role in list(Role):
        found = found.filter(role=role)
    if search:
        found = matching(found, search)
    shown = Paginator(_with_facts(found, now).order_by("username"), ON_A_PAGE).get_page(
        asked.get("page")
    )
    return {
        "page": shown,
        "q": search,
        "role": role if role in list(Role) else "",
        "state": state if state == "deactivated" else "",
        "roles": list(Role),
    }


def matching(people: QuerySet[User], text: str) -> QuerySet[User]:
    in_any = Q()
    for field in ("username", "display_name", "email", "slack_user_id"):
        in_any |= Q(**{f"{field}__icontains": text})
    return people.filter(in_any)


def _with_facts(people: QuerySet[User], now: datetime) -> QuerySet[User]:
    second = Authenticator.objects.filter(user=OuterRef("pk"), type__in=SECOND)
    return people.annotate(
        has_factor=Exists(second),
        has_token=Exists(Token.objects.usable(now).filter(owner=OuterRef("pk"))),
        seen_at=Max(
            "browser_sessions__last_seen_at", filter=Q(browser_sessions__expire_date__gt=now)
        ),
    )
