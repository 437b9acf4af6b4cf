"""Registration of switches as resources that teams can own."""

from collections.abc import Collection, Iterable, Mapping

from django.urls import reverse

from controlplane.core.owned_resources import OWNED_KINDS, OwnedKind

from .models import Switch


def list_switches() -> Iterable[str]:
    return Switch.objects.order_by("id").values_list("id", flat=True)


def find_paths(switch_ids: Collection[str]) -> Mapping[str, str]:
    return {one: reverse("switch_page", args=one.split(":", 1)) for one in switch_ids}


OWNED_KINDS.register(OwnedKind("switch", "switch", "switches", 10, list_switches, find_paths))
