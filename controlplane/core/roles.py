"""Roles and their permissions.

A *scope* guards an area of the API and is granted to tokens and roles. A *power*, such as
approving, is reserved for signed-in people.
"""

from enum import StrEnum


class Role(StrEnum):
    VIEWER = "viewer"
    OPERATOR = "operator"
    APPROVER = "approver"
    ADMIN = "admin"


class Power(StrEnum):
    APPROVE = "approve"
    ADMINISTER = "administer"


READ_SCOPES = frozenset(
    {
        "switches:read",
        "reports:read",
        "breakers:read",
        "dlq:read",
        "slo:read",
        "audit:read",
        "metrics:read",
    }
)
WRITE_SCOPES = frozenset(
    {
        "switches:write",
        "switches:trip",
        "switches:emergency",
        "ramps:write",
        "gates:write",
        "report:write",
        "breakers:write",
        "dlq:write",
        "slo:write",
    }
)
OPERATOR_SCOPES = READ_SCOPES | WRITE_SCOPES
SCIM = "scim"
ADMIN_SCOPES = frozenset({"config:read", "config:write", "relay", SCIM})
ALL_SCOPES = OPERATOR_SCOPES | ADMIN_SCOPES
EXCLUSIVE_SCOPES = frozenset({SCIM})
"""Scopes of tokens that have no other scope."""

SCOPES_OF: dict[Role, frozenset[str]] = {
    Role.VIEWER: READ_SCOPES,
    Role.OPERATOR: OPERATOR_SCOPES,
    Role.APPROVER: OPERATOR_SCOPES,
    Role.ADMIN: ALL_SCOPES,
}
POWERS_OF: dict[Role, frozenset[Power]] = {
    Role.VIEWER: frozenset(),
    Role.OPERATOR: frozenset(),
    Role.APPROVER: frozenset({Power.APPROVE}),
    Role.ADMIN: frozenset({Power.APPROVE, Power.ADMINISTER}),
}
