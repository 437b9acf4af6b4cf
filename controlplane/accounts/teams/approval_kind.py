"""The approval kind of changes of authority: of teams, and of the rules."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from controlplane.core import reasons
from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.errors import Conflict, InvalidInput

from . import changes, queries, rules, services
from .state import TEAM
from .storage import lock_teams

MAX_TAKEN = 10


def _get_resource(request: Approval) -> str:
    """Return the team that a request is about: for a new team, the one that it will be below."""
    if request.target.startswith(rules.PREFIX):
        return request.target
    is_new = request.diff.get("team", [""])[0] is None
    above = request.diff.get("parent", [None, None])[1] if is_new else None
    return f"{TEAM}:{above or services.get_slug(request)}"


def _describe_changes(requests: Sequence[Approval]) -> list[dict[str, Any]]:
    return [_describe(one) for one in requests]


def _describe(request: Approval) -> dict[str, Any]:
    """Return the readable changes of a request, with what it takes from other teams."""
    shown = changes.describe(request.diff)
    if "owns" in request.diff:
        slug = services.get_slug(request)
        taken = queries.preview_patterns(slug, request.diff["owns"][1]).taken
        if taken:
            named = ", ".join(f"{name} (of {owner})" for name, owner in taken[:MAX_TAKEN])
            more = f" and {len(taken) - MAX_TAKEN} more" if len(taken) > MAX_TAKEN else ""
            shown["takes over"] = named + more
    return shown


@approvals.on_approval(
    Approval.Kind.AUTHORITY_CHANGE,
    lock_first=lambda: lock_teams(to_change=True),
    check_reason=reasons.find_text_problems,
    requires_confirmation=lambda _approval: True,
    describe_changes=_describe_changes,
    get_resource=_get_resource,
)
def _carry_out(approval: Approval, actor: Actor, now: datetime) -> None:
    """Apply an approved change; raise :class:`Conflict` if it is no longer possible."""
    module = rules if approval.target.startswith(rules.PREFIX) else services
    try:
        module.carry_out(approval, actor, now)
    except InvalidInput as error:  # Something else has changed since, such as another team.
        problems = [text for texts in error.errors.values() for text in texts]
        raise Conflict(f"This can't be carried out now. {' '.join(problems)}") from error
