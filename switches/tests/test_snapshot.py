"""The published snapshot: one state has one text."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switches.snapshot import SnapshotEntry, SnapshotVersion, render

EPOCH = UUID("8b4ccf29-2b0e-4b5c-9c69-1d5f2f3a7a11")
PUBLICATION = SnapshotVersion(EPOCH, 1842, datetime(2026, 11, 21, 3, 0, 0, 5, tzinfo=UTC))
FINANCE = SnapshotEntry(
    id="segment:finance",
    scope="segment",
    key="finance",
    allow_percent=Decimal("0.00"),
    salt="a3f1",
    reason='정산 오류 "P1"\n',
    engaged_at=datetime(2026, 11, 21, 2, 0, tzinfo=UTC),
    expires_at=datetime(2026, 11, 22, 2, 0, tzinfo=UTC),
    on_expiry="hold",
)

entries = st.builds(
    lambda key, points, reason: SnapshotEntry(
        id=f"feature:{key}",
        scope="feature",
        key=key,
        allow_percent=Decimal(points) / 100,
        salt="s",
        reason=reason,
        engaged_at=datetime(2026, 1, 1, tzinfo=UTC),
        expires_at=None,
        on_expiry="ramp",
    ),
    key=st.from_regex(r"[A-Za-z0-9._-]{1,12}", fullmatch=True),
    points=st.integers(0, 9999),
    reason=st.text(st.characters(codec="utf-8")),
)
published = st.lists(entries, unique_by=lambda entry: entry.id, max_size=8)


def test_known_state_gives_the_known_bytes() -> None:
    expected = (
        '{"epoch":"8b4ccf29-2b0e-4b5c-9c69-1d5f2f3a7a11","poll_seconds":5,'
        '"published_at":"2026-11-21T03:00:00.000005Z","schema":1,"switches":['
        '{"allow_percent":0,"engaged_at":"2026-11-21T02:00:00.000000Z",'
        '"expires_at":"2026-11-22T02:00:00.000000Z","id":"segment:finance","key":"finance",'
        '"on_expiry":"hold","reason":"정산 오류 \\"P1\\"\\n","salt":"a3f1","scope":"segment",'
        '"state":"engaged"}],"version":1842}'
    )
    assert render(PUBLICATION, [FINANCE]) == expected.encode()


@given(published, st.randoms(use_true_random=False))
def test_order_of_the_rows_does_not_change_the_bytes(
    rows: list[SnapshotEntry], random: Random
) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert render(PUBLICATION, shuffled) == render(PUBLICATION, rows)


@given(published)
def test_bytes_are_what_an_independent_writer_makes_of_the_same_document(
    rows: list[SnapshotEntry],
) -> None:
    text = render(PUBLICATION, rows).decode()
    document = json.loads(text)
    assert text == json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert [switch["id"] for switch in document["switches"]] == sorted(row.id for row in rows)
    assert [switch["reason"] for switch in document["switches"]] == [
        row.reason for row in sorted(rows, key=lambda row: row.id)
    ]


@pytest.mark.parametrize(
    ("percent", "text"),
    [("0.00", "0"), ("5.00", "5"), ("12.50", "12.5"), ("33.33", "33.33"), ("0.07", "0.07")],
)
def test_percentage_is_a_number_in_its_shortest_form(percent: str, text: str) -> None:
    row = replace(FINANCE, allow_percent=Decimal(percent))
    assert f'"allow_percent":{text},' in render(PUBLICATION, [row]).decode()


@given(st.integers(0, 9999))
def test_every_percentage_reads_back_exactly(points: int) -> None:
    row = replace(FINANCE, allow_percent=Decimal(points) / 100)
    document = json.loads(render(PUBLICATION, [row]), parse_float=Decimal)
    assert document["switches"][0]["allow_percent"] * 100 == points


def test_entry_with_a_share_is_ramping() -> None:
    row = replace(FINANCE, allow_percent=Decimal("0.01"))
    assert '"state":"ramping"' in render(PUBLICATION, [row]).decode()


def test_times_are_utc_with_six_decimals_whatever_their_zone() -> None:
    seoul = timezone(timedelta(hours=9))
    row = replace(FINANCE, engaged_at=datetime(2026, 11, 21, 11, 0, tzinfo=seoul))
    assert '"engaged_at":"2026-11-21T02:00:00.000000Z"' in render(PUBLICATION, [row]).decode()


def test_permanent_episode_has_a_null_expiry() -> None:
    row = replace(FINANCE, expires_at=None)
    assert '"expires_at":null' in render(PUBLICATION, [row]).decode()


def test_etag_is_strong_and_names_epoch_and_version() -> None:
    assert PUBLICATION.etag == '"8b4ccf29-2b0e-4b5c-9c69-1d5f2f3a7a11.1842"'
