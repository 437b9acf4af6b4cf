"""Services of comments, and the registry of the kinds of objects that take them.

Apps register their kinds in modules named `comment_kinds`.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from controlplane.core import authority
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.comments.models import Comment
from controlplane.core.errors import InvalidInput, NotFound
from controlplane.core.json_values import require_readable
from controlplane.core.live.change_notices import notify_changed
from controlplane.core.registry import KindRegistry


@dataclass(frozen=True)
class CommentedObject:
    """An object with comments: title, page, audit target, and topic and name of live updates.

    `resource` is the resource that it belongs to, "" if it belongs to none.
    """

    title: str
    path: str
    audit_target: str
    topic: str
    name: str
    resource: str = ""


@dataclass(frozen=True)
class CommentKind:
    """A kind of objects that take comments.

    People need the scope `scope` to write one. `find` returns the object with a key, or raises
    :class:`NotFound`.
    """

    name: str
    scope: str
    find: Callable[[str], CommentedObject]


COMMENT_KINDS = KindRegistry[CommentKind]("comment_kinds")


def find_kind(kind: str) -> CommentKind:
    known = COMMENT_KINDS.get(kind)
    if known is None:
        raise NotFound(f"There are no comments on {kind}.")
    return known


def list_comments(kind: str, keys: Collection[str]) -> QuerySet[Comment]:
    """Return the comments on objects of a kind, newest first."""
    return Comment.objects.filter(kind=kind, key__in=keys).order_by("-id")


@transaction.atomic
def add_comment(*, kind: str, key: str, text: str, actor: Actor, now: datetime) -> Comment:
    """Add a comment with an audit row.

    Raise :class:`Forbidden`, :class:`NotFound`, or :class:`InvalidInput` if the text is empty or
    longer than 2,000 characters.
    """
    known = find_kind(kind)
    actor.require(known.scope)
    if not text.strip():
        raise InvalidInput({"text": ["Enter a comment."]})
    require_readable(text=text)
    commented = known.find(key)
    authority.require_in_limits(actor, commented.resource)
    comment = Comment.objects.create(
        kind=kind, key=key, text=text.strip(), author=actor.label, written_at=now
    )
    notify_changed(commented.topic, commented.name)
    audit.record(
        actor=actor,
        action=f"{kind}.commented",
        target=commented.audit_target,
        reason=comment.text,
        after={"comment": comment.pk},
        now=now,
    )
    return comment
