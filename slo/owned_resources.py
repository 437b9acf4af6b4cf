"""Registration of SLOs as resources that teams can own."""

from collections.abc import Collection, Iterable, Mapping

from django.urls import reverse

from controlplane.core.owned_resources import OWNED_KINDS, OwnedKind

from .models import Slo


def list_slos() -> Iterable[str]:
    names = Slo.objects.present().order_by("name").values_list("name", flat=True)
    return [f"slo:{name}" for name in names]


def find_paths(resources: Collection[str]) -> Mapping[str, str]:
    return {one: reverse("slo_page", args=[one.partition(":")[2]]) for one in resources}


OWNED_KINDS.register(OwnedKind("slo", "SLO", "SLOs", 40, list_slos, find_paths))
