"""The vectors for authors of SDKs, each checked against this library."""

import json
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from switchgear.clock import ConsoleClock
from switchgear.evaluation import snapshot
from switchgear.evaluation.bucketing import BUCKETS, bucket
from switchgear.evaluation.decisions import blocks
from switchgear.evaluation.snapshot_store import SnapshotStore
from switchgear.testing import FakeClock

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "vectors"
EPOCH = "8b4ccf29-2b0e-4b5c-9c69-1d5f2f3a7a11"


def vectors(name: str) -> list[Any]:
    found = json.loads((FOLDER / name).read_text(encoding="utf-8"))["vectors"]
    return [pytest.param(vector, id=str(number)) for number, vector in enumerate(found)]


def no_draw() -> int:
    raise AssertionError("nothing here is left to chance")


def read(*rows: dict[str, Any]) -> snapshot.Snapshot:
    document = {"schema": 1, "epoch": EPOCH, "version": 17, "switches": list(rows)}
    return snapshot.parse_snapshot(json.dumps(document).encode())


def seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


@pytest.mark.parametrize("vector", vectors("bucketing.json"))
def test_key_falls_into_the_bucket_of_the_vector(vector: dict[str, Any]) -> None:
    salt, key = vector["salt"], vector["targeting_key"]

    assert sha256(f"{salt}:{key}".encode()).hexdigest() == vector["sha256"]
    assert bucket(salt, key) == vector["bucket"]


@pytest.mark.parametrize("vector", vectors("bucketing.json"))
def test_key_is_in_the_shares_of_the_vector(vector: dict[str, Any]) -> None:
    row = {"id": "feature:chat", "state": "ramping", "salt": vector["salt"]}

    for share in vector["shares"]:
        shared = read({**row, "allow_percent": share["allow_percent"]})
        entry = shared.entries["feature:chat"]
        assert blocks(entry, vector["targeting_key"], now=0, draw=no_draw) is not share["allowed"]


@pytest.mark.parametrize("vector", vectors("expiry.json"))
def test_entry_counts_as_what_the_vector_says(vector: dict[str, Any]) -> None:
    shared = read({"id": "segment:finance", "salt": "s", "reason": "why", **vector["entry"]})
    entry, now = shared.entries["segment:finance"], seconds(vector["server_time"])

    def is_let_through(draw: int) -> bool:
        return not blocks(entry, None, now=now, draw=lambda: draw)

    # By the lowest bucket and the highest: nobody passes, everybody does, or some do.
    outcomes = {(False, False): "engaged", (True, True): "released", (True, False): "ramping"}
    assert outcomes[is_let_through(0), is_let_through(BUCKETS - 1)] == vector["treated_as"]
    assert (not is_let_through(0)) is vector["blocks_everybody"]


@pytest.mark.parametrize("vector", vectors("decision.json"))
def test_question_is_decided_as_in_the_vector(vector: dict[str, Any]) -> None:
    asked, draw = vector["question"], vector["draw"]
    store = SnapshotStore(
        ConsoleClock(FakeClock(seconds(vector["server_time"]))),
        draw=no_draw if draw is None else lambda: draw,
    )
    store.clock.trust_local()
    store.accept(snapshot.parse_snapshot(json.dumps(vector["snapshot"]).encode()))

    decision = store.decide(
        *(tuple(asked[keys]) for keys in ("segments", "features", "experiments")),
        asked["targeting_key"],
    )

    told = {"allowed": decision.allowed, "switch": decision.switch, "reason": decision.reason}
    assert told == vector["decision"]
    assert decision.version == 17
    assert decision.known


def test_vectors_are_all_there() -> None:
    counted = {name: len(vectors(f"{name}.json")) for name in ("bucketing", "expiry", "decision")}
    assert counted == {"bucketing": 38, "expiry": 23, "decision": 38}


def test_shares_are_exact_at_every_hundredth_of_a_percent() -> None:
    """0.28 * 100 is a little over 28 in binary, and 1.15 * 100 a little under 115."""
    for points in range(BUCKETS + 1):
        percent = Decimal(points) / 100
        row = f'{{"id":"feature:chat","state":"ramping","salt":"s","allow_percent":{percent}}}'
        document = f'{{"schema":1,"epoch":"{EPOCH}","version":1,"switches":[{row}]}}'
        entry = snapshot.parse_snapshot(document.encode()).entries["feature:chat"]
        assert entry.allow_points == points
