"""Base of the API views that list an object's comments and add one."""

from abc import ABC, abstractmethod
from datetime import datetime
from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from controlplane.core.actors import Actor
from controlplane.core.comments import services
from controlplane.core.comments.models import Comment
from controlplane.core.http.fields import EmptyBody, Text
from controlplane.core.http.resources import Resource, TimestampField
from controlplane.core.http.views import Done, ListView, mutation


class CommentShape(Resource[Comment]):
    id = serializers.IntegerField()
    text = serializers.CharField()
    author = serializers.CharField()
    written_at = TimestampField()


class AddedCommentShape(CommentShape):
    dry_run = serializers.BooleanField(required=False)


class CommentBody(EmptyBody):
    text = Text(max_length=2000, help_text="1 to 2,000 characters.")


class CommentList(ListView[Comment], ABC):
    """The comments on one object, newest first; :meth:`find_key` names it by the path."""

    queryset = Comment.objects.all()
    serializer_class = CommentShape
    ordering = "-id"
    kind: ClassVar[str]

    @abstractmethod
    def find_key(self, **path: Any) -> str:
        """Return the key of the object that the path names."""

    def apply_filters(self, rows: QuerySet[Comment], filters: dict[str, Any]) -> QuerySet[Comment]:
        return rows.filter(kind=self.kind, key=self.find_key(**self.kwargs))

    @extend_schema(request=CommentBody, responses={201: AddedCommentShape})
    @mutation(CommentBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, **path: Any) -> Done:
        """Add a comment, which can't be changed or removed later."""
        key = self.find_key(**path)
        comment = services.add_comment(
            kind=self.kind, key=key, text=body["text"], actor=actor, now=now
        )
        return Done(CommentShape.render(comment), status=201)
