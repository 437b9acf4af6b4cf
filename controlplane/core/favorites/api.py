"""API of a person's own favorites."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from controlplane.core.actors import Actor
from controlplane.core.favorites import services
from controlplane.core.favorites.models import Favorite
from controlplane.core.http.fields import EmptyBody, Filters
from controlplane.core.http.openapi import BY_SESSION
from controlplane.core.http.permissions import IsPerson, actor_of
from controlplane.core.http.resources import Resource, TimestampField
from controlplane.core.http.views import ApiView, Done, ListView, mutation

KEYS = (
    "A switch's id (`feature:chat`), a dependency (`core->oracle`), the name of an SLO, or a "
    "stream of dead letters with its Redis server (`default/axiom:dlq:events`)."
)


class FavoriteShape(Resource[Favorite]):
    kind = serializers.CharField()
    key = serializers.CharField()
    created_at = TimestampField()


class SavedFavoriteShape(FavoriteShape):
    dry_run = serializers.BooleanField(required=False)


class RemovedFavoriteShape(serializers.Serializer[Any]):
    removed = serializers.BooleanField(help_text="False if it was no favorite.")
    dry_run = serializers.BooleanField(required=False)


class FavoriteFilters(Filters):
    kind = serializers.ChoiceField(services.FAVORITE_KINDS.names, required=False)


class FavoriteList(ListView[Favorite]):
    """Your favorites, newest first."""

    queryset = Favorite.objects.all()
    serializer_class = FavoriteShape
    filters = FavoriteFilters
    ordering = "-id"
    permission_classes = [IsPerson]

    def apply_filters(
        self, rows: QuerySet[Favorite], filters: dict[str, Any]
    ) -> QuerySet[Favorite]:
        return rows.filter(user_id=actor_of(self.request).user_id or 0, **filters)


class FavoriteView(ApiView):
    permission_classes = [IsPerson]
    path_parameters = [
        OpenApiParameter("kind", str, OpenApiParameter.PATH, description="As in the list."),
        OpenApiParameter("key", str, OpenApiParameter.PATH, description=KEYS),
    ]

    @mutation(EmptyBody, SavedFavoriteShape, auth=BY_SESSION)
    def put(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, kind: str, key: str
    ) -> Done:
        """Add a favorite; repeating it changes nothing."""
        favorite = services.add_favorite(user_id=actor.user_id or 0, kind=kind, key=key, now=now)
        return Done(FavoriteShape.render(favorite))

    @mutation(EmptyBody, {200: RemovedFavoriteShape}, auth=BY_SESSION)
    def delete(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, kind: str, key: str
    ) -> Done:
        """Remove a favorite."""
        removed = services.remove_favorite(user_id=actor.user_id or 0, kind=kind, key=key)
        return Done({"removed": removed})
