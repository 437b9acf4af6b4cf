"""Dependencies as favorites, by name: `core->oracle`."""

from collections.abc import Collection, Mapping

from django.urls import reverse

from breakers.models import Dependency
from controlplane.core.favorites.services import FAVORITE_KINDS, FavoriteKind, FavoriteObject

KIND = "dependency"


def find_dependencies(keys: Collection[str]) -> Mapping[str, FavoriteObject]:
    found = {}
    for one in Dependency.objects.registered().select_named(keys):
        path = reverse("dependency_page", args=[one.caller, one.callee])
        found[one.name] = FavoriteObject(one.name, path)
    return found


FAVORITE_KINDS.register(FavoriteKind(KIND, "Dependency", "breaker-closed", find_dependencies))
