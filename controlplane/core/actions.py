"""Actions on resources that teams can own, and who may do each by default.

A *resource* is a switch (`segment:finance`), `service:core`, `dependency:core->oracle`, `slo:name`,
`stream:name` or `team:payments`. A request to change a rule concerns `authority:release:global`.
Rules in the database replace these defaults.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from .roles import Role


class Action(StrEnum):
    """Something that people and tokens do with resources.

    ENGAGE also trips switches, forces breakers open, ends overrides that suspend the protection of
    breakers, pauses or aborts ramps, and pauses or cancels jobs. EXTEND also acknowledges and
    reconfirms. RELEASE also resumes ramps, and RELEASE_AT_ONCE advances them. OVERRIDE forces
    breakers other than open, ends a forced open or shortens it, and excludes times from SLOs.
    REPLAY also edits and restores dead letters; PURGE also discards them. EDIT changes
    registrations and policies.
    """

    ENGAGE = "engage"
    EXTEND = "extend"
    RELEASE = "release"
    RELEASE_AT_ONCE = "release_at_once"
    APPROVE = "approve"
    OVERRIDE = "override"
    REPLAY = "replay"
    PURGE = "purge"
    EDIT = "edit"


class Relation(StrEnum):
    """The relation that a person must have to a resource.

    OWNER is a member of the owning team or of one of its parents; anyone, if nobody owns the
    resource. ROOT is a member of a root team; anyone, while there are no teams.
    """

    ANYONE = "anyone"
    OWNER = "owner"
    ROOT = "root"


@dataclass(frozen=True)
class Requirement:
    """The least role and the relation to the resource that an action requires."""

    relation: Relation
    role: Role


_OWNER_OPERATOR = Requirement(Relation.OWNER, Role.OPERATOR)
_OWNER_APPROVER = Requirement(Relation.OWNER, Role.APPROVER)
_ANY_OPERATOR = Requirement(Relation.ANYONE, Role.OPERATOR)
_ANY_ADMIN = Requirement(Relation.ANYONE, Role.ADMIN)

DEFAULT_RULES: Mapping[tuple[Action, str], Requirement] = {
    (Action.ENGAGE, ""): _ANY_OPERATOR,
    (Action.EXTEND, ""): _ANY_OPERATOR,
    (Action.RELEASE, ""): _OWNER_OPERATOR,
    (Action.RELEASE, "global"): Requirement(Relation.ROOT, Role.OPERATOR),
    (Action.RELEASE_AT_ONCE, ""): _OWNER_APPROVER,
    (Action.RELEASE_AT_ONCE, "global"): Requirement(Relation.ROOT, Role.APPROVER),
    (Action.APPROVE, ""): _OWNER_APPROVER,
    (Action.APPROVE, "global"): Requirement(Relation.ROOT, Role.APPROVER),
    (Action.APPROVE, "team"): Requirement(Relation.ROOT, Role.APPROVER),
    (Action.APPROVE, "authority"): Requirement(Relation.ROOT, Role.APPROVER),
    (Action.OVERRIDE, ""): _OWNER_OPERATOR,
    (Action.REPLAY, ""): _OWNER_OPERATOR,
    (Action.PURGE, ""): _OWNER_OPERATOR,
    (Action.EDIT, ""): _OWNER_OPERATOR,
    (Action.EDIT, "service"): _ANY_ADMIN,
    (Action.EDIT, "dependency"): _ANY_ADMIN,
    (Action.EDIT, "slo"): _ANY_ADMIN,
    (Action.EDIT, "team"): _OWNER_APPROVER,
}
"""Rules by action and kind of resource; those of the kind "" hold for kinds without their own."""
