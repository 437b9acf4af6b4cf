"""Bundle: all that a data plane holds for its relays, in parts with hashes, signed. Pure.

A part maps keys to one line of text each, mostly canonical JSON. The *manifest* is the head of the
bundle with the SHA-256 of each part, as canonical JSON; its signature covers the whole bundle.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

import orjson

from controlplane.core.canonical import timestamp, timestamp_or_none
from controlplane.core.signatures import PublicKey, SigningKey, sign
from controlplane.dataplane.memory.json_elements import check_count, check_text, parse_time
from switches.snapshot import SnapshotVersion

SCHEMA = 1
SIGNED_PREFIX = b"switchgear/bundle/1\n"
SNAPSHOT, DRILLS, CLOSED_ORDERS, TOKENS, CODES, KNOWN, POLICIES, CAUSES = PARTS = (
    "snapshot",
    "drills",
    "closed_orders",
    "tokens",
    "codes",
    "known",
    "policies",
    "causes",
)


OWNERS = "owners"
"""A part that older releases don't send; without it, no team owns anything."""


class InvalidBundle(Exception):
    """A bundle that can't be accepted; the message is the reason, for the log."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a bundle: lines of text by key, and the SHA-256 of all in hexadecimal."""

    values: Mapping[str, bytes]
    sha256: str = field(compare=False)

    @classmethod
    def build(cls, values: Mapping[str, bytes]) -> "Part":
        """Return the part with its hash; raise ValueError if a value has more than one line."""
        values = dict(sorted(values.items()))  # The next ones are sorted faster then.
        lines = [b"%b %b" % (orjson.dumps(key), value) for key, value in values.items()]
        text = b"\n".join(lines)
        if text.count(b"\n") > max(0, len(lines) - 1):
            raise ValueError("a value has more than one line")
        return cls(values, sha256(text).hexdigest())


@dataclass(frozen=True, slots=True)
class BundleHead:
    """Versions of a bundle's parts.

    `revision` is the revision of the tokens and codes, and `registrations` that of the known
    switches. `policies` is the version of the policies, set at `policies_at`, and `degradation` the
    revision of the causes. `registrations`, `policies` and `degradation` are -1 while the data
    plane has none of this epoch: their parts are empty then and must not be used. `keys` are the
    public keys as `GET /api/v1/keys` lists them. `is_kept` is True if the data plane restored the
    snapshot from its disk: then it has no drills, and no owners of tokens.
    """

    publication: SnapshotVersion
    snapshot_signature: str
    is_kept: bool
    revision: int
    registrations: int
    policies: int
    policies_at: datetime | None
    degradation: int
    left_epochs: frozenset[UUID] = frozenset()
    keys: tuple[Mapping[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "degradation": self.degradation,
            "epoch": str(self.publication.epoch),
            "is_kept": self.is_kept,
            "keys": self.keys,
            "left_epochs": sorted(map(str, self.left_epochs)),
            "policies": self.policies,
            "policies_at": timestamp_or_none(self.policies_at),
            "published_at": timestamp(self.publication.published_at),
            "registrations": self.registrations,
            "revision": self.revision,
            "schema": SCHEMA,
            "snapshot_signature": self.snapshot_signature,
            "version": self.publication.version,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "BundleHead":
        """Return the head; raise KeyError, TypeError or ValueError if a field is invalid."""
        if document["schema"] != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        if type(document["is_kept"]) is not bool:
            raise TypeError("is_kept is not a boolean")
        policies_at = document["policies_at"]
        for key in document["keys"]:
            PublicKey.parse(check_text(key["public_key"]))
        return cls(
            publication=SnapshotVersion(
                UUID(document["epoch"]),
                check_count(document["version"]),
                parse_time(document["published_at"]),
            ),
            snapshot_signature=check_text(document["snapshot_signature"]),
            is_kept=document["is_kept"],
            revision=check_count(document["revision"]),
            registrations=_check_revision(document["registrations"]),
            policies=_check_revision(document["policies"]),
            policies_at=None if policies_at is None else parse_time(policies_at),
            degradation=_check_revision(document["degradation"]),
            left_epochs=frozenset(map(UUID, document["left_epochs"])),
            keys=tuple(document["keys"]),
        )


@dataclass(frozen=True)
class Bundle:
    """A head and the parts, by name.

    `sources` are the objects that the parts were collected from, to recognize unchanged ones.
    """

    head: BundleHead
    parts: Mapping[str, Part]
    sources: Mapping[str, Sequence[object]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def manifest(self) -> bytes:
        hashes = {name: part.sha256 for name, part in self.parts.items()}
        document = {**self.head.to_json(), "parts": hashes}
        return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


@dataclass(frozen=True)
class SignedBundle:
    """A bundle with the bytes of its manifest, and their signature as a header value."""

    bundle: Bundle = field(repr=False)
    manifest: bytes
    signature: str

    @property
    def head(self) -> BundleHead:
        return self.bundle.head

    @property
    def parts(self) -> Mapping[str, Part]:
        return self.bundle.parts

    @property
    def hashes(self) -> dict[str, str]:
        """The SHA-256 of each part, by its name."""
        return {name: part.sha256 for name, part in self.parts.items()}


def sign_bundle(bundle: Bundle, keys: Iterable[SigningKey]) -> SignedBundle:
    manifest = bundle.manifest
    return SignedBundle(bundle, manifest, sign(SIGNED_PREFIX + manifest, keys))


def explain_refusal(before: BundleHead, after: BundleHead) -> str:
    """Return why a bundle with head `after` must not follow one with `before`; "" if it may.

    An epoch that was left never returns. Within an epoch, versions and revisions never decrease,
    and a version has one time of publication; a restored backup gives it another one. Parts that
    may be older without delaying a switch are returned by :func:`find_older_parts` instead.
    """
    ours, theirs = before.publication, after.publication
    if theirs.epoch != ours.epoch:
        return "its epoch was left" if theirs.epoch in before.left_epochs else ""
    if theirs.version < ours.version:
        return f"its version {theirs.version} is older than {ours.version}"
    if theirs.version == ours.version and theirs != ours:
        return f"its version {theirs.version} has another time of publication"
    if after.revision < before.revision:
        return f"its revision {after.revision} of the tokens is older than {before.revision}"
    if theirs == ours and after.is_kept and not before.is_kept:
        return "it was restored from disk"
    return ""


def find_older_parts(before: BundleHead, after: BundleHead) -> frozenset[str]:
    """Return the names of the parts that are older in `after` than in `before`, or unknown.

    These must not be used; the other parts may be.
    """
    same = before.publication.epoch == after.publication.epoch
    numbers = {
        KNOWN: (before.registrations, after.registrations),
        POLICIES: (before.policies, after.policies),
        CAUSES: (before.degradation, after.degradation),
    }
    return frozenset(
        name for name, (ours, theirs) in numbers.items() if theirs < 0 or (same and theirs < ours)
    )


def _check_revision(value: Any) -> int:
    return value if type(value) is int and value == -1 else check_count(value)
