"""Parsing of snapshots whose signature must be valid. Pure; the signature check is an argument.

The control plane signs what it publishes. A data plane that adds emergency orders or a drill sends
the published document as text in the field `signed`, which the signature covers. Such an addition
is not signed, so it can only block: it never releases a switch, and never ends an order.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from switchgear.evaluation.snapshot import (
    InvalidSnapshot,
    Snapshot,
    SwitchEntry,
    check_size,
    parse_snapshot,
    parse_with_signed_text,
)

Verify = Callable[[str, bytes], None]
"""A function of a signature and the bytes that it has to cover. It raises :class:`InvalidSnapshot`
for an invalid one."""


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """A published snapshot with its signature, as data planes write it to a file.

    `confirmed_at` is the time when the database last confirmed it, in UNIX seconds; the signature
    does not cover it.
    """

    document: bytes
    signature: str
    confirmed_at: float


def parse_published_file(content: bytes) -> PublishedFile:
    """Return what a published file holds; raise :class:`InvalidSnapshot` for other content."""
    check_size(content)
    try:
        fields = json.loads(content)
        texts = [fields[name] for name in ("snapshot", "signature", "confirmed_at")]
        document, signature, confirmed_at = texts
        moment = datetime.fromisoformat(confirmed_at)
        if moment.tzinfo is None:
            raise ValueError
        return PublishedFile(document.encode(), str(signature), moment.timestamp())
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise InvalidSnapshot("It is not a published snapshot.") from None


def parse_signed_snapshot(
    document: bytes, signature: str, before: Mapping[str, SwitchEntry], verify: Verify
) -> Snapshot:
    """Return the snapshot in `document`, whose signature is verified by `verify`.

    `before` are the entries of the previous snapshot, as for :func:`parse_snapshot`. Raise the
    error of `verify`, or :class:`InvalidSnapshot`.
    """
    if b'"signed"' not in document:
        verify(signature, document)
        return replace(parse_snapshot(document, before), signature=signature)
    outer, text = parse_with_signed_text(document, before)
    if text is None:
        verify(signature, document)
        return replace(outer, signature=signature)
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise InvalidSnapshot("Its signed text is not valid Unicode.") from None
    verify(signature, content)
    return _add_blocks(parse_snapshot(content, outer.entries), outer, signature)


def _add_blocks(signed: Snapshot, outer: Snapshot, signature: str) -> Snapshot:
    """Return the `signed` snapshot with the blocks that the document around it adds."""
    if outer.mark != signed.mark:
        raise InvalidSnapshot("Its signed text has another version.")
    entries = dict(signed.entries)
    for switch, entry in outer.entries.items():
        if _is_block_added(entry, signed.entries.get(switch)):
            entries[switch] = entry
    return replace(
        signed,
        entries=entries,
        document=outer.document,
        open_orders=outer.open_orders,
        hidden_orders=outer.hidden_orders,
        signature=signature,
        signed_entries=signed.entries,
    )


def _is_block_added(entry: SwitchEntry, signed: SwitchEntry | None) -> bool:
    """Return True if `entry` blocks more than the `signed` entry of its switch, at any time."""
    if entry.state != "engaged":
        return False
    if signed is None:
        return True
    # An entry that lapses would release what the signed one still blocks.
    return entry.lapses_at is None and (signed.state != "engaged" or signed.lapses_at is not None)
