"""Items of the attention list for contested instances, and for tokens in the names of others."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import F, Q, QuerySet

from controlplane.accounts.models.tokens import Token, TokenCaller
from controlplane.core.instances.models import Instance
from controlplane.core.page_registry import LINK, AttentionAction, AttentionItem, attention_rows
from controlplane.core.roles import Power

SHOWN_FOR = timedelta(minutes=15)
MAX_INSTANCES = 500
REFUSALS_SHOWN_FOR = timedelta(hours=1)
MAX_REFUSALS = 500


def _find_refused(now: datetime) -> QuerySet[TokenCaller]:
    """Return services and tokens that were refused lately, and not accepted since."""
    refused = TokenCaller.objects.filter(refused_at__gte=now - REFUSALS_SHOWN_FOR)
    lasting = refused.filter(Q(used_at=None) | Q(used_at__lt=F("refused_at")))
    return lasting.select_related("token").order_by("service", "token_id")[:MAX_REFUSALS]


@attention_rows(71, _find_refused)
def list_refused_tokens(now: datetime, rows: Sequence[TokenCaller]) -> list[AttentionItem]:
    """Return an item per service that a team owns and that other tokens report or poll for."""
    by_service: dict[str, list[TokenCaller]] = defaultdict(list)
    for row in rows:
        by_service[row.service].append(row)
    return [_build_refusal(service, found, now) for service, found in by_service.items()]


def _build_refusal(service: str, found: list[TokenCaller], now: datetime) -> AttentionItem:
    names = sorted(row.token.name for row in found)
    one, it = ("the token", "it") if len(names) == 1 else ("the tokens", "them")
    return AttentionItem(
        kind="token_refused",
        severity="warning",
        title=f"{service}: reports refused, because another team owns it",
        detail=f"The team that owns {service} doesn't own {one} {', '.join(names)}, so reports are"
        f" refused and polls don't count. If {service} uses {it}, transfer {it} to the team;"
        f" otherwise revoke {it}.",
        path="/tokens/",
        since=min(row.refused_at or now for row in found),
        actions=(AttentionAction("Review tokens", "/tokens/", Power.ADMINISTER, "token", LINK),),
        resource=f"service:{service}",
    )


def filter_contested(now: datetime) -> QuerySet[Instance]:
    return Instance.objects.filter(contested_at__gte=now - SHOWN_FOR)


def _find_contested(now: datetime) -> QuerySet[Instance]:
    rows = filter_contested(now).only("id", "service", "contested_at", "reported")
    return rows.order_by("contested_at", "id")[:MAX_INSTANCES]


@attention_rows(70, _find_contested)
def list_contested_instances(now: datetime, rows: Sequence[Instance]) -> list[AttentionItem]:
    """Return an item per service that has contested instances (one id, several processes)."""
    by_service: dict[str, list[Instance]] = defaultdict(list)
    for row in rows:
        by_service[row.service].append(row)
    ids = {int(used[0]) for row in rows for used in row.reported.get("tokens", ())}
    names = dict(Token.objects.filter(pk__in=ids).values_list("pk", "name")) if ids else {}
    return [_build_item(service, found, names, now) for service, found in by_service.items()]


def _build_item(
    service: str, found: list[Instance], names: dict[int, str], now: datetime
) -> AttentionItem:
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    used_ids = {used[0] for row in found for used in row.reported.get("tokens", ())}
    used_names = sorted(names[token_id] for token_id in used_ids if token_id in names)
    tokens = f" Tokens used: {', '.join(used_names)}." if used_names else ""
    return AttentionItem(
        kind="instance_contested",
        severity="warning",
        title=f"{found[0].id}{more}: reported by more than one process or token",
        detail=f"Only one of them is shown for {service}, and the other's reports are ignored."
        f"{tokens} Give each process its own instance name; revoke unexpected tokens.",
        path="/tokens/",
        since=min(row.contested_at or now for row in found),
        actions=(AttentionAction("Review tokens", "/tokens/", Power.ADMINISTER, "token", LINK),),
        resource=f"service:{service}",
    )
