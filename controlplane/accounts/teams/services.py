"""Writes of teams; a person's change of who may do what waits for a second person."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from controlplane.accounts.models.teams import Team
from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from controlplane.core.roles import Power

from . import changes, fields, groups, lockout, writes
from .changes import EMPTY, Diff
from .documents import Document, read_documents, record_changes
from .fields import require_reason
from .storage import lock_teams, read_teams

KIND = Approval.Kind.AUTHORITY_CHANGE
DELETED = "The team was deleted."


@dataclass(frozen=True)
class TeamChange:
    """The outcome of a change: what of it is done, and the request for approval of the rest."""

    slug: str
    diff: Diff
    approval: Approval | None = None


def get_team(slug: str) -> Team:
    team = Team.objects.select_related("parent").filter(slug=slug).first()
    if team is None:
        raise NotFound(f"There is no team {slug}.")
    return team


def read_document(slug: str) -> Document:
    """Return the document of a team; raise :class:`NotFound`."""
    found = read_documents(Team.objects.filter(slug=slug)).get(slug)
    if found is None:
        raise NotFound(f"There is no team {slug}.")
    return found


@transaction.atomic
def create_team(
    *, slug: str, wanted: Mapping[str, Any], reason: str = "", actor: Actor, now: datetime
) -> TeamChange:
    """Create a team with the fields of :func:`fields.check_fields`, or request its approval.

    Only admins create teams without a parent; who may edit the parent also creates others below it.
    Raise :class:`Forbidden`, :class:`InvalidInput`, or :class:`Conflict` if another request for
    this slug is pending.
    """
    lock_teams(to_change=True)
    if Team.objects.filter(slug=slug).exists():
        raise InvalidInput({"slug": [f"The team {slug} already exists."]})
    _require_parent(wanted.get("parent"), actor)
    return request_change(slug=slug, wanted=wanted, reason=reason, actor=actor, now=now)


@transaction.atomic
def change_team(
    *,
    slug: str,
    wanted: Mapping[str, Any],
    seen: str = "",
    reason: str = "",
    actor: Actor,
    now: datetime,
) -> TeamChange:
    """Change the given fields of a team, or request the approval of those that need it.

    `members` of `wanted` are all members by hand. Raise :class:`Forbidden`, :class:`NotFound`,
    :class:`InvalidInput`, or :class:`Conflict` if the team no longer has the revision `seen`
    (:func:`changes.get_revision`) or another request is pending.
    """
    lock_teams(to_change=True)
    document = read_document(slug)
    _require_edit(slug, actor)
    if seen not in ("", changes.get_revision(document)):
        raise Conflict("Someone else changed this team. Open it again.")
    if "parent" in wanted and (wanted["parent"] or None) != document["parent"]:
        _require_parent(wanted["parent"], actor)
    return request_change(slug=slug, wanted=wanted, reason=reason, actor=actor, now=now)


@transaction.atomic
def change_members(
    *,
    slug: str,
    roles: Mapping[str, str | None],
    reason: str = "",
    actor: Actor,
    now: datetime,
) -> TeamChange:
    """Set the roles of some people in a team, None to remove them; see :func:`change_team`."""
    lock_teams(to_change=True)
    document = read_document(slug)
    _require_edit(slug, actor)
    writes.require_no_group_members(document, [*roles])
    present = changes.list_manual_members(document)
    wanted = {name: role for name, role in {**present, **roles}.items() if role is not None}
    return request_change(
        slug=slug, wanted={"members": wanted}, reason=reason, actor=actor, now=now
    )


@transaction.atomic
def delete_team(*, slug: str, reason: str = "", actor: Actor, now: datetime) -> TeamChange:
    """Delete a team, or request the approval; what it owns is then unowned.

    Raise :class:`Conflict` while it has teams below it or tokens.
    """
    lock_teams(to_change=True)
    document = read_document(slug)
    _require_edit(slug, actor)
    diff = {"team": [slug, None], **changes.compare(document, {"owns": [], "members": {}})}
    return _carry_out_or_request(slug, document, diff, reason, actor, now)


@transaction.atomic
def request_change(
    *,
    slug: str,
    wanted: Mapping[str, Any],
    reason: str,
    is_tried: bool = False,
    actor: Actor,
    now: datetime,
) -> TeamChange:
    """Do what :func:`create_team` and :func:`change_team` do, after the check of permissions.

    With `is_tried`, the caller has tried the change, together with others that it depends on.
    """
    lock_teams(to_change=True)
    document = read_documents(Team.objects.filter(slug=slug)).get(slug)
    if document is None:
        fields.check_slug(slug)
    checked = fields.check_fields(wanted)
    if document is None and not checked.get("name"):
        raise InvalidInput({"name": ["Enter a name, such as Payments."]})
    diff = changes.compare(document or EMPTY, checked)
    if document is None:
        diff = {"team": [None, slug], **diff}
    elif "members" in diff:
        writes.require_no_group_members(document, diff["members"][1])
    return _carry_out_or_request(slug, document, diff, reason, actor, now, is_tried=is_tried)


def get_slug(approval: Approval) -> str:
    """Return the slug of the team that a request concerns."""
    return approval.target.partition("#")[0].partition(":")[2]


def carry_out(approval: Approval, actor: Actor, now: datetime) -> None:
    """Apply an approved change of a team; raise :class:`Conflict` if the team has changed."""
    slug = get_slug(approval)
    _apply(slug, approval.diff, reason=approval.reason, actor=actor, now=now)
    if approval.diff.get("team", [None, slug])[1] is None:
        _void_requests(slug, actor, now)


def _carry_out_or_request(
    slug: str,
    document: Document | None,
    diff: Diff,
    reason: str,
    actor: Actor,
    now: datetime,
    *,
    is_tried: bool = False,
) -> TeamChange:
    if reason:
        require_reason(reason)
    open_part, guarded = (diff, {}) if actor.type == "system" else changes.split(diff)
    if guarded:
        require_reason(reason)
    if guarded and not is_tried:
        with transaction.atomic():  # Try all of it, so that the request can be carried out.
            _apply(slug, guarded, reason=reason, actor=actor, now=now)
            transaction.set_rollback(True)
    if open_part:
        _apply(slug, open_part, reason=reason, actor=actor, now=now)
    if not guarded:
        return TeamChange(slug, diff)
    name = diff["name"][1] if "name" in diff else (document or EMPTY)["name"]
    approval = approvals.request_approval(
        kind=KIND,
        target=_name_target(slug, guarded),
        summary=changes.summarize(name, guarded),
        diff=guarded,
        reason=reason.strip(),
        actor=actor,
        now=now,
    )
    return TeamChange(slug, diff, approval)


def _apply(slug: str, diff: Diff, *, reason: str, actor: Actor, now: datetime) -> None:
    """Apply a diff and record it; the caller holds the teams' lock.

    Raise :class:`InvalidInput` if a person locks everyone out by it.
    """
    former = read_teams()
    before: dict[str, Document | None] = {slug: None}
    before |= read_documents(Team.objects.filter(slug=slug))
    writes.apply_diff(slug, diff, now)
    record_changes(before, actor=actor, now=now, reason=reason.strip())
    if "member_group" in diff or "lead_group" in diff:
        groups.apply_directory_groups(actor=actor, now=now)
    if actor.type != "system" and (lost := lockout.find_lost(former, read_teams())):
        raise InvalidInput({"members": [lost]})


def _void_requests(slug: str, actor: Actor, now: datetime) -> None:
    """Void the pending requests for parts of a deleted team."""
    parts = Approval.objects.filter(
        kind=KIND, state=Approval.State.PENDING, target__startswith=f"team:{slug}#"
    )
    for target in parts.values_list("target", flat=True):
        approvals.void_requests(kind=KIND, target=target, actor=actor, now=now, why=DELETED)


def _name_target(slug: str, diff: Diff) -> str:
    """Return the target of a request; requests for different parts of a team don't conflict."""
    if "team" not in diff and len(diff) == 1:
        (part,) = diff
        return f"team:{slug}#{part}"
    return f"team:{slug}"


def _require_edit(slug: str, actor: Actor) -> None:
    """Raise :class:`Forbidden` unless the actor may request changes of the team."""
    if actor.type == "token":
        raise Forbidden(
            "Only signed-in people change teams. Programs load them as configuration (teams.yaml)."
        )
    authority.require(actor, Action.EDIT, f"team:{slug}")


def _require_parent(parent: str | None, actor: Actor) -> None:
    """Raise unless the actor may put a team below `parent`, or at the root if that is None."""
    if actor.type == "system":
        return
    if not parent:
        actor.require_power(Power.ADMINISTER)
    elif Team.objects.filter(slug=parent).exists():
        _require_edit(parent, actor)
    else:
        raise InvalidInput({"parent": [f"There is no team {parent}."]})
