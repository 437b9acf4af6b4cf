"""Switches as favorites, also those that were never registered."""

from collections.abc import Collection, Mapping

from controlplane.core.favorites.services import FAVORITE_KINDS, FavoriteKind, FavoriteObject
from switches.scopes import is_switch_id

KIND = "switch"


def find_switches(keys: Collection[str]) -> Mapping[str, FavoriteObject]:
    return {
        key: FavoriteObject(key, f"/switches/{key.replace(':', '/', 1)}/")
        for key in keys
        if is_switch_id(key)
    }


FAVORITE_KINDS.register(FavoriteKind(KIND, "Switch", "board", find_switches))
