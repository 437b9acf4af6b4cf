"""JSON elements of entries, credentials, orders and policies, on disk and in bundles. Pure.

The functions that parse raise KeyError, TypeError or ValueError if an element is invalid; they
ignore unknown fields.
"""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

from controlplane.core.canonical import timestamp
from switches.snapshot import SnapshotEntry

from .credentials import CodeHash, Credential
from .order_set import ClosedOrder
from .policies import DependencyPolicy

DIGEST_BYTES = 32


def parse_entry(element: Any) -> SnapshotEntry:
    scope, key = check_text(element["scope"]), check_text(element["key"])
    if element["id"] != f"{scope}:{key}":
        raise ValueError("a switch's id is not its scope and key")
    expires_at = element["expires_at"]
    return SnapshotEntry(
        id=element["id"],
        scope=scope,
        key=key,
        allow_percent=Decimal(str(element["allow_percent"])),
        salt=check_text(element["salt"]),
        reason=check_text(element["reason"]),
        engaged_at=parse_time(element["engaged_at"]),
        expires_at=None if expires_at is None else parse_time(expires_at),
        on_expiry=check_text(element["on_expiry"]),
    )


def credential_element(
    prefix: bytes, credential: Credential, *, with_owner: bool
) -> dict[str, Any]:
    """Return a credential as JSON; `with_owner` adds the owner's id and role."""
    element: dict[str, Any] = {
        "digest": credential.digest.hex(),
        "expires_at": credential.expires_at,
        "id": credential.token_id,
        "name": credential.name,
        "prefix": prefix.decode("ascii"),
        "scopes": sorted(credential.scopes),
    }
    # Without limits the format is that of older releases, which ignore these fields.
    if credential.services:
        element["services"] = sorted(credential.services)
    if credential.team:
        element["team"] = credential.team
    if credential.teams:
        element["teams"] = sorted(credential.teams)
    if credential.patterns:
        element["patterns"] = sorted(credential.patterns)
    if credential.only_owned:
        element["only_owned"] = True
    if with_owner:
        element |= {"owner_id": credential.owner_id, "role": credential.role}
    return element


def parse_credential(element: Any) -> tuple[bytes, Credential]:
    digest = bytes.fromhex(element["digest"])
    if len(digest) != DIGEST_BYTES:
        raise ValueError("a token's digest is not a SHA-256")
    expires_at = element["expires_at"]
    if not (expires_at is None or isinstance(expires_at, float)):
        raise TypeError("a token's expiry is not a time")
    owner_id = element.get("owner_id")
    return element["prefix"].encode("ascii"), Credential(
        token_id=check_count(element["id"]),
        name=check_text(element["name"]),
        digest=digest,
        scopes=frozenset(map(check_text, element["scopes"])),
        expires_at=expires_at,
        owner_id=None if owner_id is None else check_count(owner_id),
        role=check_text(element.get("role", "")),
        services=frozenset(map(check_text, element.get("services", ()))),
        team=check_text(element.get("team", "")),
        teams=frozenset(map(check_text, element.get("teams", ()))),
        patterns=frozenset(map(check_text, element.get("patterns", ()))),
        only_owned=bool(element.get("only_owned", False)),
    )


def parse_ownership(element: Any) -> tuple[str, ...]:
    """Return the owner of a pattern, and the teams above it."""
    chain = tuple(map(check_text, element))
    if isinstance(element, str) or not chain:
        raise ValueError("a pattern has no owner")
    return chain


def code_element(name: str, code: CodeHash) -> dict[str, Any]:
    return {
        "digest": code.digest.hex(),
        "name": name,
        "salt": code.salt.hex(),
        "user_id": code.user_id,
    }


def parse_code(element: Any) -> tuple[str, CodeHash]:
    return check_text(element["name"]), CodeHash(
        check_count(element["user_id"]),
        bytes.fromhex(element["salt"]),
        bytes.fromhex(element["digest"]),
    )


def closed_order_element(order_id: UUID, order: ClosedOrder) -> dict[str, Any]:
    return {"at": timestamp(order.at), "id": str(order_id), "subject": order.subject}


def parse_closed_order(element: Any) -> tuple[UUID, ClosedOrder]:
    order = ClosedOrder(parse_time(element["at"]), check_text(element["subject"]))
    return UUID(element["id"]), order


def policy_element(policy: DependencyPolicy) -> dict[str, Any]:
    return {
        "callee": policy.callee,
        "caller": policy.caller,
        "config": orjson.Fragment(policy.text) if policy.text else None,
        "version": policy.version,
    }


def parse_policy(element: Any) -> DependencyPolicy:
    config = element["config"]
    if not isinstance(config, dict | None):
        raise TypeError("a policy is not an object")
    text = b"" if config is None else orjson.dumps(config, option=orjson.OPT_SORT_KEYS)
    caller, callee = check_text(element["caller"]), check_text(element["callee"])
    return DependencyPolicy(caller, callee, check_count(element["version"]), text)


def check_count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r} is not a count")
    return value


def check_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def parse_time(value: Any) -> datetime:
    return datetime.fromisoformat(check_text(value)).astimezone(UTC)
