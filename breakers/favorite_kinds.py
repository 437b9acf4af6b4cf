"""Dependencies as favorites, by name: `core->oracle`."""

from collections.abc import Collection, Mapping

from breakers.message_facts import page_path
from breakers.models import Dependency
from controlplane.core.favorites.services import FAVORITE_KINDS, FavoriteKind, FavoriteObject

KIND = "dependency"


def find_dependencies(keys: Collection[str]) -> Mapping[str, FavoriteObject]:
    found = {}
    for one in Dependency.objects.registered().select_named(keys):
        path = page_path(one)
        found[one.name] = FavoriteObject(one.label, path)
    return found


FAVORITE_KINDS.register(FavoriteKind(KIND, "Dependency", "breaker-closed", find_dependencies))
