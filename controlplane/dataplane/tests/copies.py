"""Saved copies for the tests of the disk, and the strategy that makes any of them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
from hypothesis import strategies as st

from controlplane.core.degradation_levels import Cause
from controlplane.dataplane.memory.credentials import Credential
from controlplane.dataplane.memory.policies import DependencyPolicy, Policies
from controlplane.dataplane.storage.saved_policies import SavedPolicies
from controlplane.dataplane.storage.saved_snapshot import SavedState
from controlplane.dataplane.storage.snapshot_file import PoliciesDisk, SnapshotDisk, signing_key
from switches.snapshot import SnapshotEntry, SnapshotVersion

EPOCH = UUID("8b4ccf29-2b0e-4b5c-9c69-1d5f2f3a7a11")
OTHER_EPOCH = UUID("0d8b7a60-6b1a-4a0e-8f3c-5a1d1c0f7e22")
THIRD_EPOCH = UUID("f6a3cf0e-9a8e-4a52-b9a1-0d5f2f3a7a33")
NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
KEY = signing_key("a secret that is kept elsewhere")

ENTRY = SnapshotEntry(
    id="segment:finance",
    scope="segment",
    key="finance",
    allow_percent=Decimal("12.50"),
    salt="5f2c",
    reason='정산 오류 "INC-7"\n\u2028😀 \x00',
    engaged_at=NOON,
    expires_at=NOON + timedelta(hours=24, microseconds=1),
    on_expiry="hold",
)
CREDENTIAL = Credential(
    token_id=7,
    name="결제 서비스",
    digest=bytes(range(32)),
    scopes=frozenset({"switches:read", "report:write"}),
    expires_at=(NOON + timedelta(days=90, microseconds=1)).timestamp(),
)
POLICY = DependencyPolicy("core", "oracle", 7, b'{"override":null,"retry":{"cap_seconds":0.5}}')
CAUSE = Cause(
    2, "core->oracle", "Oracle 응답 없음", since="x", fails=("Search",), works=("Reading",)
)
SAVED = SavedState(
    publication=SnapshotVersion(EPOCH, 17, NOON),
    entries=(ENTRY,),
    tokens={b"reader0001": CREDENTIAL},
    revision=4,
    known=frozenset({"segment:finance", "global:all"}),
    registrations=2,
    left_epochs=frozenset({OTHER_EPOCH}),
    confirmed_at=NOON + timedelta(seconds=1),
)
SAVED_POLICIES = SavedPolicies(
    policies=Policies.build(EPOCH, 9, [POLICY], NOON),
    revision=3,
    causes=(CAUSE,),
    left_epochs=frozenset({OTHER_EPOCH}),
    confirmed_at=NOON + timedelta(seconds=1),
)


def disk(folder: Path, **options: Any) -> SnapshotDisk:
    """A disk of a process whose clock is one minute past noon."""
    return SnapshotDisk(folder, KEY, **{"clock": lambda: NOON + timedelta(minutes=1), **options})


def policies_disk(folder: Path, **options: Any) -> PoliciesDisk:
    """A policies disk of a process whose clock is one minute past noon."""
    return PoliciesDisk(folder, KEY, **{"clock": lambda: NOON + timedelta(minutes=1), **options})


def version(number: int, epoch: UUID = EPOCH, **changes: Any) -> SavedState:
    """Return version `number`, confirmed that many seconds after noon."""
    at = NOON + timedelta(seconds=number)
    publication = SnapshotVersion(epoch, number, NOON)
    begun = replace(SAVED, publication=publication, left_epochs=frozenset(), confirmed_at=at)
    return replace(begun, **changes)


_moments = st.integers(0, 32_000_000_000_000_000).map(
    lambda microseconds: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
)
_keys = st.from_regex(r"[A-Za-z0-9._-]{1,120}", fullmatch=True)
_texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
_counts = st.integers(min_value=0, max_value=2**63 - 1)


@st.composite
def entries(draw: st.DrawFn) -> SnapshotEntry:
    scope, key = draw(st.sampled_from(["segment", "feature", "experiment"])), draw(_keys)
    return SnapshotEntry(
        id=f"{scope}:{key}",
        scope=scope,
        key=key,
        allow_percent=Decimal(draw(st.integers(0, 10_000))) / 100,
        salt=draw(_texts),
        reason=draw(_texts),
        engaged_at=draw(_moments),
        expires_at=draw(st.none() | _moments),
        on_expiry=draw(st.sampled_from(["hold", "ramp", "release"])),
    )


credentials = st.builds(
    Credential,
    token_id=_counts,
    name=_texts,
    digest=st.binary(min_size=32, max_size=32),
    scopes=st.frozensets(st.sampled_from(["switches:read", "report:write", "metrics:read"])),
    expires_at=st.none() | _moments.map(datetime.timestamp),
)
_slugs = st.from_regex(r"[a-z0-9-]{1,60}", fullmatch=True)
_documents = st.dictionaries(
    _texts, st.none() | _counts | st.floats(allow_nan=False, allow_infinity=False) | _texts
)
_policies = st.builds(
    DependencyPolicy,
    caller=_slugs,
    callee=_slugs,
    version=_counts,
    text=st.just(b"")
    | _documents.map(lambda found: orjson.dumps(found, option=orjson.OPT_SORT_KEYS)),
)
_causes = st.builds(
    Cause,
    level=st.sampled_from([1, 2, 3]),
    what=_texts,
    text=_texts,
    since=_texts,
    fails=st.lists(_texts, max_size=2).map(tuple),
    works=st.lists(_texts, max_size=2).map(tuple),
)


saved_copies = st.builds(
    SavedState,
    publication=st.builds(
        SnapshotVersion,
        epoch=st.uuids().filter(lambda epoch: epoch != OTHER_EPOCH),
        version=_counts,
        published_at=_moments,
    ),
    entries=st.lists(entries(), unique_by=lambda entry: entry.id, max_size=5).map(
        lambda found: tuple(sorted(found, key=lambda entry: entry.id))
    ),
    tokens=st.dictionaries(
        st.from_regex(r"[a-z0-9]{4,16}", fullmatch=True).map(str.encode), credentials, max_size=4
    ),
    revision=_counts,
    known=st.frozensets(_keys.map("segment:{}".format), max_size=6),
    registrations=_counts,
    left_epochs=st.sampled_from([frozenset(), frozenset({OTHER_EPOCH})]),
    confirmed_at=_moments,
)


@st.composite
def _policies_at_a_version(draw: st.DrawFn) -> Policies:
    epoch = draw(st.uuids().filter(lambda epoch: epoch != OTHER_EPOCH))
    found = draw(st.lists(_policies, max_size=4))
    return Policies.build(epoch, draw(_counts), found, draw(st.none() | _moments))


saved_policies = st.builds(
    SavedPolicies,
    policies=_policies_at_a_version(),
    revision=_counts,
    causes=st.lists(_causes, max_size=2).map(tuple),
    left_epochs=st.sampled_from([frozenset(), frozenset({OTHER_EPOCH})]),
    confirmed_at=_moments,
)


def read_policies(folder: Path) -> bytes:
    try:
        return (folder / "policies").read_bytes()
    except FileNotFoundError:  # Not written yet, or between two renames.
        return b""
