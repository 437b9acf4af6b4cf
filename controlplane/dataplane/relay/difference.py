"""Bundles as events between an upstream and a relay: in full, or as a difference. Pure.

An event holds the manifest, its signature, and the parts that changed. A changed part names its
*base*, the hash of the part that the difference is relative to (null for a whole part), and the
keys to set and to delete. Values travel as texts, so that each relay hashes the same bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from controlplane.core.signatures import InvalidSignature, PublicKey, verify
from controlplane.dataplane.memory.json_elements import check_text

from .bundle import (
    PARTS,
    SIGNED_PREFIX,
    Bundle,
    BundleHead,
    InvalidBundle,
    Part,
    SignedBundle,
    explain_refusal,
)
from .contents import BundleContents, read_contents


class OlderBundle(InvalidBundle):
    """A valid bundle that must not follow the present one."""


@dataclass(frozen=True, slots=True)
class ReceivedBundle:
    """A verified bundle with its contents."""

    signed: SignedBundle
    contents: BundleContents

    @property
    def head(self) -> BundleHead:
        return self.signed.head


def serialize_full(after: SignedBundle) -> bytes:
    """Return the data of an event with all parts."""
    return serialize_difference({}, after)


def serialize_difference(bases: Mapping[str, Part], after: SignedBundle) -> bytes:
    """Return the data of an event for a relay that has the parts `bases`."""
    parts = {
        name: _part_difference(bases.get(name), part)
        for name, part in after.parts.items()
        if (base := bases.get(name)) is None or base.sha256 != part.sha256
    }
    document = {
        "manifest": after.manifest.decode(),
        "parts": parts,
        "signature": after.signature,
    }
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def apply_event(
    before: ReceivedBundle | None, data: bytes, public_keys: Mapping[str, PublicKey]
) -> ReceivedBundle:
    """Return the bundle of an event's `data`, relative to `before`, signed with a key by its id.

    Raises :class:`InvalidBundle` if it is not complete, unaltered and signed, and
    :class:`OlderBundle` if it must not follow `before`.
    """
    try:
        return _apply(before, orjson.loads(data), public_keys)
    except InvalidSignature as error:
        raise InvalidBundle(str(error)) from error
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        reason = f"it has another schema ({type(error).__name__}: {error})"
        raise InvalidBundle(reason) from error


def _part_difference(base: Part | None, part: Part) -> dict[str, Any]:
    known = {} if base is None else base.values
    return {
        "base": None if base is None else base.sha256,
        "set": {
            key: value.decode() for key, value in part.values.items() if known.get(key) != value
        },
        "delete": sorted(known.keys() - part.values.keys()),
    }


def _apply(
    before: ReceivedBundle | None, document: Any, public_keys: Mapping[str, PublicKey]
) -> ReceivedBundle:
    manifest = check_text(document["manifest"]).encode()
    signature = check_text(document["signature"])
    verify(signature, SIGNED_PREFIX + manifest, public_keys)
    described = orjson.loads(manifest)
    head = BundleHead.from_json(described)
    if head.publication.epoch in head.left_epochs:
        raise InvalidBundle("its epoch was replaced")
    if before is not None and (reason := explain_refusal(before.head, head)):
        raise OlderBundle(reason)
    present = {} if before is None else before.signed.parts
    hashes, changes = _check_object(described["parts"]), _check_object(document["parts"])
    if missing := set(PARTS) - hashes.keys():
        raise InvalidBundle(f"it lacks the part {min(missing)}")
    parts = {
        name: _apply_part(name, present.get(name), changes.get(name), check_text(sha256))
        for name, sha256 in hashes.items()
    }
    result = Bundle(head, parts)
    contents = (
        read_contents(result)
        if before is None
        else read_contents(result, before.signed.bundle, before.contents)
    )
    return ReceivedBundle(SignedBundle(result, manifest, signature), contents)


def _apply_part(name: str, present: Part | None, change: Any, sha256: str) -> Part:
    part = present
    if change is not None:
        base = change["base"]
        if base is not None and (present is None or present.sha256 != base):
            raise InvalidBundle(f"the difference of {name} is relative to an unknown part")
        values = {} if base is None or present is None else dict(present.values)
        for key in change["delete"]:
            del values[key]
        for key, text in _check_object(change["set"]).items():
            values[key] = check_text(text).encode()
        part = Part.build(values)
    if part is None or part.sha256 != sha256:
        raise InvalidBundle(f"the part {name} has another hash than in the manifest")
    return part


def _check_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is not an object")
    return value
