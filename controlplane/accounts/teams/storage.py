"""Reading of the teams from the database, again only after a change."""

from django.db import connection

from controlplane.accounts.models.people import User
from controlplane.accounts.models.teams import AuthorityRule, Membership, Ownership, Team
from controlplane.core.actions import Action, Relation, Requirement
from controlplane.core.roles import Role

from .state import Member, TeamState

LOCK = 0x5317C6  # an arbitrary number, unique among our advisory locks
_Key = tuple[int, str]

_known: tuple[_Key, TeamState] | None = None


def read_teams() -> TeamState:
    """Return the teams of the present revision of credentials, which any change increments."""
    global _known
    key, known = _read_key(), _known
    if known is None or known[0] != key:
        _known = known = key, _load()
    return known[1]


def lock_teams(*, to_change: bool = False) -> None:
    """Lock the teams until the end of the transaction: against changes, or `to_change` them.

    Take it before the lock of the audit trail.
    """
    function = "pg_advisory_xact_lock" if to_change else "pg_advisory_xact_lock_shared"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s)", [LOCK])


def _read_key() -> _Key:
    # A revision that is rolled back is used again, by a transaction with another id.
    with connection.cursor() as cursor:
        cursor.execute("SELECT revision, xmin::text FROM core_credentials")
        row: _Key = cursor.fetchone()
    return row


def _load() -> TeamState:
    teams = Team.objects.order_by("slug").values_list("slug", "name", "parent__slug")
    names, parents = {}, {}
    for slug, name, parent in teams:
        names[slug], parents[slug] = name, parent or ""
    if not names:
        return TeamState(rules=_load_rules())
    memberships: dict[int, dict[str, str]] = {}
    rows = Membership.objects.filter(user__is_active=True)
    for user_id, slug, role in rows.values_list("user_id", "team__slug", "role"):
        memberships.setdefault(user_id, {})[slug] = role
    people = User.objects.filter(pk__in=memberships).values_list("pk", "username", "role")
    # A team may have been created since the first query; the next call reads all of it.
    owned = Ownership.objects.filter(team__slug__in=names).values_list("pattern", "team__slug")
    return TeamState(
        names=names,
        parents=parents,
        members={pk: Member(name, Role(role), memberships[pk]) for pk, name, role in people},
        patterns=list(owned),
        rules=_load_rules(),
    )


def _load_rules() -> dict[tuple[Action, str], Requirement]:
    rows = AuthorityRule.objects.values_list("action", "kind", "relation", "role")
    return {
        (Action(action), kind): Requirement(Relation(relation), Role(role))
        for action, kind, relation, role in rows
    }
