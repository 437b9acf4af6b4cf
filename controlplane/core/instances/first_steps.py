"""The first step: a service is connected."""

from datetime import datetime

from django.db.models import F, Q
from django.urls import reverse

from controlplane.core.freshness import GONE_AFTER
from controlplane.core.instances.exports import TOKEN_PREFIX
from controlplane.core.instances.models import Instance
from controlplane.core.page_registry import FIRST_STEPS, FirstStep, FirstStepEvidence


def find_connected_service(now: datetime) -> FirstStepEvidence | None:
    """Return the instance that reported last; clients that only have a token are no instances.

    Instances that stopped cleanly are not counted, and are shown only if no other one reported in
    the last 5 minutes.
    """
    named = Instance.objects.filter(heard_at__isnull=False).exclude(id__startswith=TOKEN_PREFIX)
    named = named.only("service", "heard_at").order_by("-heard_at")
    stopped = Q(stopped_at__gte=F("heard_at"))
    running = named.exclude(stopped).filter(heard_at__gte=now - GONE_AFTER)
    latest = running.first() or named.first()
    if latest is None or latest.heard_at is None:
        return None
    count = running.count()
    text = f"{latest.service} last reported"
    if count > 1:
        text = f"{count:,} instances reported in the last 5 minutes; {text}"
    elif not count and named.filter(stopped, pk=latest.pk).exists():
        text = f"{latest.service} has stopped; it last reported"
    return FirstStepEvidence(text, latest.heard_at, reverse("switchboard"))


FIRST_STEPS.register(
    FirstStep(
        name="service",
        title="Connect a service",
        summary="A service polls the console with the client library and checks switches itself.",
        missing="No service has reported in the last 24 hours.",
        template="core/first_steps/_service.html",
        position=10,
        find_evidence=find_connected_service,
    )
)
