"""SLOs as favorites, by name."""

from collections.abc import Collection, Mapping

from django.urls import reverse

from controlplane.core.favorites.services import FAVORITE_KINDS, FavoriteKind, FavoriteObject
from slo.models import Slo

KIND = "slo"


def find_slos(keys: Collection[str]) -> Mapping[str, FavoriteObject]:
    names = Slo.objects.present().filter(name__in=keys).values_list("name", flat=True)
    return {name: FavoriteObject(name, reverse("slo_page", args=[name])) for name in names}


FAVORITE_KINDS.register(FavoriteKind(KIND, "SLO", "slo", find_slos))
