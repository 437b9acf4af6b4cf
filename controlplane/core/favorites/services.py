"""Services of favorites, and the registry of the kinds of objects that can be starred.

Apps register their kinds in modules named `favorite_kinds`.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Case, IntegerField, Value, When

from controlplane.core.actors import Person
from controlplane.core.errors import Conflict, NotFound
from controlplane.core.favorites.models import Favorite
from controlplane.core.registry import KindRegistry

MAX_FAVORITES = 200
FILTER, SELECTED = "mine", "favorites"
"""Query parameter of lists, and its value that selects the viewer's favorites."""


@dataclass(frozen=True)
class FavoriteObject:
    """An object that can be a favorite: its title and the path of its page."""

    title: str
    path: str


@dataclass(frozen=True)
class FavoriteKind:
    """A kind of objects that people can star.

    `label` names one such object on screens. `find` returns the existing objects by key.
    """

    name: str
    label: str
    icon: str
    find: Callable[[Collection[str]], Mapping[str, FavoriteObject]]


FAVORITE_KINDS = KindRegistry[FavoriteKind]("favorite_kinds")


def find_object(kind: str, key: str) -> FavoriteObject:
    """Return an object that can be starred. Raises :class:`NotFound`."""
    known = FAVORITE_KINDS.get(kind)
    found = known.find([key]).get(key) if known else None
    if found is None:
        raise NotFound(f"There is no {kind} {key!r} to mark as a favorite.")
    return found


@transaction.atomic
def add_favorite(*, user_id: int, kind: str, key: str, now: datetime) -> Favorite:
    """Star an object. Raises :class:`NotFound`, and :class:`Conflict` if there are too many."""
    find_object(kind, key)
    # The lock makes concurrent requests of a person count one after the other.
    get_user_model().objects.select_for_update(no_key=True).get(pk=user_id)
    own = Favorite.objects.filter(user_id=user_id)
    favorite = own.filter(kind=kind, key=key).first()
    if favorite is not None:
        return favorite
    if own.count() >= MAX_FAVORITES:
        raise Conflict(f"You have {MAX_FAVORITES} favorites. Remove one first.")
    return own.create(user_id=user_id, kind=kind, key=key, created_at=now)


def remove_favorite(*, user_id: int, kind: str, key: str) -> bool:
    """Unstar an object, which may no longer exist; return True if it was a favorite."""
    return bool(Favorite.objects.filter(user_id=user_id, kind=kind, key=key).delete()[0])


def load_keys(user: Person) -> Mapping[str, Collection[str]]:
    """Return the keys of a person's favorites, by kind."""
    keys: dict[str, set[str]] = defaultdict(set)
    for kind, key in Favorite.objects.filter(user_id=user.pk).values_list("kind", "key"):
        keys[kind].add(key)
    return keys


def load_viewer_keys(request: Any) -> Mapping[str, Collection[str]]:
    """Return the keys of the viewer's favorites, by kind; they are read once for each request."""
    if not hasattr(request, "favorites"):
        request.favorites = load_keys(request.user)
    return cast("Mapping[str, Collection[str]]", request.favorites)


def read_filter(request: Any, kind: str) -> Collection[str] | None:
    """Return the keys of the favorites that a list's query selects; None if it selects all rows."""
    if request.GET.get(FILTER) != SELECTED:
        return None
    return sorted(load_viewer_keys(request).get(kind, ()))


def rank_favorites(field: str, keys: Collection[str]) -> Case:
    """Return an expression to order rows by: 0 for favorites, 1 for others."""
    # Without keys it would be a constant, which ORDER BY takes for the number of a column.
    is_favorite = When(**{f"{field}__in": [*keys] or [""]}, then=Value(0))
    return Case(is_favorite, default=Value(1), output_field=IntegerField())


def list_objects(user: Person) -> list[tuple[FavoriteKind, FavoriteObject]]:
    """Return a person's existing favorites, by kind and title, in one query and one per kind."""
    keys = load_keys(user)
    kinds = [kind for name, kind in FAVORITE_KINDS.items() if name in keys]
    found = [(kind, one) for kind in kinds for one in kind.find(keys[kind.name]).values()]
    return sorted(found, key=lambda pair: (pair[0].name, pair[1].title))
