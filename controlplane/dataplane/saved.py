"""What a data plane needs to begin again without a database, as one signed text. Pure.

The first line is `switchgear-copy 1 <HMAC-SHA256 of the rest, in hex>`, the rest one canonical JSON
document that has the snapshot in it exactly as it is served. A text is taken only if it is, byte
for byte, what this code would write for what it reads in it; so there is nothing to be lenient on.
"""

import hmac
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

from controlplane.core.canonical import timestamp
from controlplane.dataplane import saved_parts
from controlplane.dataplane.credentials import Credential, TokenTable
from controlplane.dataplane.policies import Policies
from controlplane.dataplane.saved_parts import Away
from switches.snapshot import SCHEMA, Entry, Publication, render

KIND = b"switchgear-copy"
FORMAT = b"1"
DIGEST_BYTES = 32


class Refused(Exception):
    """A saved copy that can't be taken; the text says why, for the log."""


@dataclass(frozen=True)
class Saved:
    """One state of a data plane.

    `known` are the ids of all switches ever registered, `registrations` the number that goes with
    them; `revision` is that of `tokens`. `confirmed_at` is when, by the clock of the database, all
    this was last known to be what the database holds. `policies`, of the publication's epoch, and
    what is `away` are None in a copy from before they were kept.
    """

    publication: Publication
    entries: tuple[Entry, ...]
    tokens: TokenTable
    revision: int
    known: frozenset[str]
    registrations: int
    left_epochs: frozenset[UUID]
    confirmed_at: datetime
    policies: Policies | None = None
    away: Away | None = None


def signing_key(secret_key: str) -> bytes:
    """The key that signs copies, from the installation's secret, which is kept elsewhere."""
    return hmac.digest(secret_key.encode(), b"switchgear/dataplane/disk/1", "sha256")


def merged(present: Saved, news: Saved) -> Saved:
    """What should be on disk when `present` is and `news` comes, from another process perhaps.

    Of one epoch the newer of each part, so that nothing goes back: neither the version nor a
    revoked token. Of two epochs the one that the other has not left; if neither knows of the other,
    the one that was confirmed later.
    """
    left = present.left_epochs | news.left_epochs
    ours, theirs = present.publication.epoch, news.publication.epoch
    if ours == theirs:
        return _newer_parts(present, news, left)
    if theirs in present.left_epochs:
        return present
    if ours in news.left_epochs or news.confirmed_at > present.confirmed_at:
        return replace(news, left_epochs=left - {theirs})
    return present


def _newer_parts(present: Saved, news: Saved, left: frozenset[UUID]) -> Saved:
    def served_since(saved: Saved) -> tuple[int, datetime]:
        return saved.publication.version, saved.confirmed_at

    served = max(present, news, key=served_since)
    tokens = max(present, news, key=lambda saved: saved.revision)
    known = max(present, news, key=lambda saved: saved.registrations)
    return replace(
        served,
        tokens=tokens.tokens,
        revision=tokens.revision,
        known=known.known,
        registrations=known.registrations,
        left_epochs=left - {served.publication.epoch},
        policies=max(present, news, key=_policies_version).policies,
        away=max(present, news, key=_away_revision).away,
    )


def _policies_version(saved: Saved) -> int:
    return -1 if saved.policies is None else saved.policies.version


def _away_revision(saved: Saved) -> int:
    return -1 if saved.away is None else saved.away.revision


def sign(saved: Saved, key: bytes) -> bytes:
    """The whole text of the file."""
    rest = _text(saved)
    return b"%b %b %b\n%b" % (KIND, FORMAT, _signature(rest, key), rest)


def verify(text: bytes, key: bytes) -> Saved:
    """What `text` holds. Raises :class:`Refused`; reads nothing before the signature is right."""
    first, _, rest = text.partition(b"\n")
    kind, form, signature = (*first.split(b" ", 2), b"", b"")[:3]
    if kind != KIND:
        raise Refused("it is not a copy of the data plane")
    if form != FORMAT:
        raise Refused(f"its format is not {FORMAT.decode()}")
    if not hmac.compare_digest(signature, _signature(rest, key)):
        raise Refused("its signature is wrong: it is damaged, or another key signed it")
    try:
        saved = _parse(orjson.loads(rest))
        faithful = _text(saved) == rest
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise Refused(f"its schema is another one ({type(error).__name__}: {error})") from error
    if not faithful:
        raise Refused("its schema is another one (it would be written differently)")
    return saved


def _signature(rest: bytes, key: bytes) -> bytes:
    return hmac.digest(key, rest, "sha256").hex().encode()


def _text(saved: Saved) -> bytes:
    document = {
        "confirmed_at": timestamp(saved.confirmed_at),
        "known": sorted(saved.known),
        "left_epochs": sorted(str(epoch) for epoch in saved.left_epochs),
        "registrations": _count(saved.registrations),
        "revision": _count(saved.revision),
        "snapshot": orjson.Fragment(render(saved.publication, saved.entries)),
        "tokens": [_element(prefix, saved.tokens[prefix]) for prefix in sorted(saved.tokens)],
        **saved_parts.document(saved.policies, saved.away),
    }
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def _element(prefix: bytes, credential: Credential) -> dict[str, Any]:
    return {
        "digest": credential.digest.hex(),
        "expires_at": credential.expires_at,
        "id": credential.token_id,
        "name": credential.name,
        "prefix": prefix.decode("ascii"),
        "scopes": sorted(credential.scopes),
    }


def _parse(document: Any) -> Saved:
    snapshot = document["snapshot"]
    if snapshot["schema"] != SCHEMA:
        raise ValueError(f"the snapshot's is not {SCHEMA}")
    publication = Publication(
        UUID(snapshot["epoch"]),
        _count(snapshot["version"]),
        _moment(snapshot["published_at"]),
    )
    entries = tuple(_entry(each) for each in snapshot["switches"])
    if len({entry.id for entry in entries}) != len(entries):
        raise ValueError("a switch is in it twice")
    left_epochs = frozenset(UUID(epoch) for epoch in document["left_epochs"])
    if publication.epoch in left_epochs:
        raise ValueError("its epoch is one that was left")
    return Saved(
        publication=publication,
        entries=entries,
        tokens=dict(_credential(each) for each in document["tokens"]),
        revision=_count(document["revision"]),
        known=frozenset(_words(document["known"])),
        registrations=_count(document["registrations"]),
        left_epochs=left_epochs,
        confirmed_at=_moment(document["confirmed_at"]),
        policies=saved_parts.policies_in(document, publication.epoch),
        away=saved_parts.away_in(document),
    )


def _entry(element: Any) -> Entry:
    scope, key = _word(element["scope"]), _word(element["key"])
    if element["id"] != f"{scope}:{key}":
        raise ValueError("a switch's id is not its scope and key")
    expires_at = element["expires_at"]
    return Entry(
        id=element["id"],
        scope=scope,
        key=key,
        allow_percent=Decimal(str(element["allow_percent"])),
        salt=_word(element["salt"]),
        reason=_word(element["reason"]),
        engaged_at=_moment(element["engaged_at"]),
        expires_at=None if expires_at is None else _moment(expires_at),
        on_expiry=_word(element["on_expiry"]),
    )


def _credential(element: Any) -> tuple[bytes, Credential]:
    digest = bytes.fromhex(element["digest"])
    if len(digest) != DIGEST_BYTES:
        raise ValueError("a token's digest is not a SHA-256")
    expires_at = element["expires_at"]
    if not (expires_at is None or isinstance(expires_at, float)):
        raise TypeError("a token's end is not a time")
    return element["prefix"].encode("ascii"), Credential(
        token_id=_count(element["id"]),
        name=_word(element["name"]),
        digest=digest,
        scopes=frozenset(_words(element["scopes"])),
        expires_at=expires_at,
    )


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r} is not a count")
    return value


def _word(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _words(values: Iterable[Any]) -> Iterable[str]:
    return map(_word, values)


def _moment(value: Any) -> datetime:
    return datetime.fromisoformat(_word(value)).astimezone(UTC)
