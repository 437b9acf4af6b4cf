"""The vectors for authors of SDKs, checked against this code."""

import json
from datetime import datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest

from switches.bucketing import BUCKETS, admits, bucket
from switches.evaluate import CallDecision, CallQuestion, evaluate, read_question
from switches.snapshot import SnapshotEntry, SnapshotVersion, render
from switches.tests.test_bucketing import no_draw

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "vectors"


def vectors(name: str) -> list[Any]:
    """Return the vectors of one file, with numbers as they are written."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    found = json.loads(text, parse_float=Decimal)["vectors"]
    return [pytest.param(vector, id=str(number)) for number, vector in enumerate(found)]


def entry_of(element: dict[str, Any]) -> SnapshotEntry:
    expires_at = element["expires_at"]
    return SnapshotEntry(
        id=element["id"],
        scope=element["scope"],
        key=element["key"],
        allow_percent=Decimal(element["allow_percent"]),
        salt=element["salt"],
        reason=element["reason"],
        engaged_at=datetime.fromisoformat(element["engaged_at"]),
        expires_at=None if expires_at is None else datetime.fromisoformat(expires_at),
        on_expiry=element["on_expiry"],
    )


@pytest.mark.parametrize("vector", vectors("bucketing.json"))
def test_key_falls_into_the_bucket_and_the_shares_of_the_vector(vector: dict[str, Any]) -> None:
    salt, key = vector["salt"], vector["targeting_key"]

    assert sha256(f"{salt}:{key}".encode()).hexdigest() == vector["sha256"]
    assert bucket(salt, key) == vector["bucket"]
    for share in vector["shares"]:
        percent = Decimal(share["allow_percent"])
        assert admits(percent, salt, key, no_draw) is share["allowed"]


def test_bucketing_vectors_reach_both_sides_of_each_edge() -> None:
    for parameters in vectors("bucketing.json"):
        (vector,) = parameters.values
        allowed = {Decimal(one["allow_percent"]) * 100: one["allowed"] for one in vector["shares"]}
        assert allowed[vector["bucket"]] is False
        assert allowed[vector["bucket"] + 1] is True
        assert allowed[Decimal(0)] is False
        assert allowed[Decimal(BUCKETS)] is True


@pytest.mark.parametrize("vector", vectors("expiry.json"))
def test_entry_counts_as_what_the_vector_says(vector: dict[str, Any]) -> None:
    known = {"id": "segment:finance", "scope": "segment", "key": "finance"}
    more = {"salt": "s", "reason": "why", "engaged_at": "2026-01-01T00:00:00.000000Z"}
    entry = entry_of({**known, **more, **vector["entry"]})
    now = datetime.fromisoformat(vector["server_time"])
    question = CallQuestion.naming({"segments": ["finance"]})

    def is_let_through(draw: int) -> bool:
        return evaluate(question, {entry.id: entry}, now=now, draw=lambda: draw).allowed

    # Allowed for the lowest and the highest bucket: nobody passes, everybody, or some.
    outcomes = {(False, False): "engaged", (True, True): "released", (True, False): "ramping"}
    assert outcomes[is_let_through(0), is_let_through(BUCKETS - 1)] == vector["treated_as"]
    assert (not is_let_through(0)) is vector["blocks_everybody"]
    assert entry.state == vector["entry"]["state"]


def test_expiry_vectors_reach_both_sides_of_the_five_seconds() -> None:
    late = set()
    for parameters in vectors("expiry.json"):
        (vector,) = parameters.values
        entry = vector["entry"]
        if entry["expires_at"] and (entry["state"], entry["on_expiry"]) == ("engaged", "release"):
            now, over = (
                datetime.fromisoformat(at) for at in (vector["server_time"], entry["expires_at"])
            )
            late.add(now - over)
    assert {timedelta(seconds=4.999999), timedelta(seconds=5)} <= late


@pytest.mark.parametrize("vector", vectors("decision.json"))
def test_question_is_decided_as_in_the_vector(vector: dict[str, Any]) -> None:
    entries = {element["id"]: entry_of(element) for element in vector["snapshot"]["switches"]}
    draw = vector["draw"]

    decision = evaluate(
        read_question(vector["question"]),
        entries,
        now=datetime.fromisoformat(vector["server_time"]),
        draw=no_draw if draw is None else lambda: draw,
    )

    assert decision == CallDecision(**vector["decision"])


def test_snapshots_of_the_vectors_are_as_they_are_served() -> None:
    for vector in json.loads((FOLDER / "decision.json").read_text(encoding="utf-8"))["vectors"]:
        snapshot = vector["snapshot"]
        publication = SnapshotVersion(
            UUID(snapshot["epoch"]),
            snapshot["version"],
            datetime.fromisoformat(snapshot["published_at"]),
        )
        exact = json.loads(json.dumps(snapshot), parse_float=Decimal)
        served = render(publication, [entry_of(element) for element in exact["switches"]])
        assert served == orjson.dumps(snapshot, option=orjson.OPT_SORT_KEYS)
