"""Replays of dead letters while their workers are killed: each letter once, counts consistent.

Real processes, three streams and three groups of errors. One group is poisoned: the consumer fails
on it again, so it comes back, and half of it has exceeded its retries.
"""

import contextlib
import os
import signal
import threading
import time
from collections import Counter
from itertools import count

import psycopg
import pytest
import redis

from controlplane.tests.installation import running, wait_until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

STREAMS, GROUPS = ("events", "orders", "mails"), ("Timeout", "Locked", "Poisoned")
REASON = "broker is back, 0 errors since 02:10"
RATE_PER_SECOND = 200
MAX_RETRIES = 3
GARBAGE = b"\xff\xfe\x00\x80"
numbers = count(1)


@pytest.fixture(scope="module")
def installation(tmp_path_factory):
    with running(tmp_path_factory.mktemp("replays") / "var") as one:
        yield one


@pytest.fixture(scope="module")
def client(installation):
    with installation.client(installation.token("dlq:read", "dlq:write")) as one:
        yield one


@pytest.mark.parametrize(
    ("total", "kill_at"),
    [pytest.param(1500, (100, 700), marks=pytest.mark.smoke), (10_000, (1500, 6000))],
)
def test_killed_twice_each_letter_is_in_its_origin_once_and_all_counts_agree(
    installation, client, total, kill_at
):
    store = redis.Redis.from_url(installation.services()["redis_url"])
    suffix = next(numbers)
    names = [f"{name}-{suffix}" for name in STREAMS]
    sent = {name: _fill(store, name, total // len(names)) for name in names}
    with _consuming(store, names):
        jobs = _ask(client, names)
        began = time.monotonic()
        for least in kill_at:
            wait_until(lambda at=least: _retried(installation, jobs) >= at, 90)
            _kill_whoever_works(installation, jobs)
        wait_until(
            lambda: _states(installation, jobs) == {"completed"},
            200,
            lambda: _describe_jobs(client, jobs),
        )
        took = time.monotonic() - began
        wait_until(lambda: all(_all_came_back(store, name, sent[name]) for name in names), 20)

    done = 0
    for name in names:
        done += _assert_each_once(installation, client, store, name, sent[name])
    assert _retried(installation, jobs) == done
    assert sum(_counts(client, job)["done"] for job in jobs) == done
    assert _audited(installation, jobs) == done
    assert _rows(
        installation,
        "SELECT count(*) FROM breakers_departure WHERE state = 'intended' AND job_id = ANY(%s)",
        jobs,
    ) == [(0,)]
    print(f"\n{done:,} letters in {took:.0f} s, {done / took:.0f} a second, killed twice")


def _fill(store, name, letters):
    """Add letters of each group in turn; return the retried and the other ones by id."""
    fields = {}
    with store.pipeline(transaction=False) as pipeline:
        for number in range(letters):
            group = GROUPS[number % len(GROUPS)]
            one = {b"order": b"%d" % number, b"payload": GARBAGE if group == "Poisoned" else b"{}"}
            more = {b"dlq_error": f"order {number} failed: {group}", b"dlq_error_type": group}
            if group == "Poisoned" and number % 2:
                more[b"dlq_retry_count"] = str(MAX_RETRIES)
            pipeline.xadd(f"axiom:dlq:{name}", {**one, **more})
            fields[number] = one, b"dlq_retry_count" not in more
        ids = pipeline.execute()
    return dict(zip(ids, fields.values(), strict=True))


@contextlib.contextmanager
def _consuming(store, names):
    """A consumer that returns poisoned messages with the fields added by the retry."""
    over = threading.Event()

    def run():
        places = {f"axiom:{name}": "0" for name in names}
        while not over.is_set():
            with contextlib.suppress(redis.RedisError):
                for origin, entries in store.xread(places, count=500, block=100) or ():
                    for entry_id, fields in entries:
                        if fields[b"payload"] == GARBAGE:
                            name = origin.decode().removeprefix("axiom:")
                            failed = {b"dlq_error": "still", b"dlq_error_type": "Poisoned"}
                            store.xadd(f"axiom:dlq:{name}", {**fields, **failed})
                        places[origin.decode()] = entry_id

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _ask(client, names):
    """Start one job for each group of each stream, all at once."""
    jobs = []
    for name in names:
        found = client.get(f"/api/v1/dlq/streams/axiom:dlq:{name}/groups/").json()
        groups = {one["error_type"]: one for one in found["results"]}
        assert set(groups) == set(GROUPS)
        for group in groups.values():
            body = {
                "action": "retry",
                "stream": f"axiom:dlq:{name}",
                "filter": {"fingerprint": group["fingerprint"]},
                "rate_per_second": RATE_PER_SECOND,
                "reason": REASON,
            }
            answer = client.post("/api/v1/dlq/jobs/", json=body)
            assert answer.status_code == 202, answer.text
            jobs.append(answer.json()["id"])
    return jobs


def _assert_each_once(installation, client, store, name, sent):
    """Check the origin, the rest and the archive of one stream; return the number of retries."""
    retried = {entry_id: fields for entry_id, (fields, eligible) in sent.items() if eligible}
    arrived = store.xrange(f"axiom:{name}")
    found = Counter(fields[b"dlq_retry_of"] for _, fields in arrived)
    assert found == dict.fromkeys(retried, 1)
    for _, fields in arrived:
        original = {key: value for key, value in fields.items() if not key.startswith(b"dlq_")}
        assert original == retried[fields[b"dlq_retry_of"]]
        assert fields[b"dlq_retry_count"] == b"1"

    left = dict(store.xrange(f"axiom:dlq:{name}"))
    too_often = sent.keys() - retried.keys()
    came_back = {fields[b"dlq_retry_of"] for key, fields in left.items() if key not in too_often}
    assert too_often <= left.keys()
    assert came_back == {key for key, one in retried.items() if one[b"payload"] == GARBAGE}
    assert len(left) == len(too_often) + len(came_back)

    archived = _rows(
        installation,
        "SELECT position, new_id, state FROM breakers_departure JOIN breakers_letterstream stream"
        " ON stream.id = stream_id WHERE name = %s",
        f"axiom:dlq:{name}",
    )
    by_new_id = {key.decode(): fields[b"dlq_retry_of"].decode() for key, fields in arrived}
    assert {new_id: _id(position) for position, new_id, _ in archived} == by_new_id
    assert {state for *_, state in archived} == {"done"}
    assert len(archived) == len(arrived)
    (inbox,) = (
        one for one in client.get("/api/v1/dlq/").json() if one["name"] == f"axiom:dlq:{name}"
    )
    assert inbox["retried_total"] == len(arrived)
    return len(arrived)


def _kill_whoever_works(installation, jobs):
    """Kill a process that holds a lease, in the middle of a batch.

    The leases of processes that died earlier last for some more seconds.
    """
    alive = []

    def find_workers():
        query = (
            "SELECT DISTINCT split_part(worker, ':', 2)::int FROM core_job WHERE id = ANY(%s)"
            " AND lease_until > clock_timestamp() AND finished_at IS NULL"
        )
        holders = {pid for (pid,) in _rows(installation, query, jobs)}
        alive[:] = holders & installation.tree().keys()
        return bool(alive)

    wait_until(find_workers, 30)
    os.kill(alive[0], signal.SIGKILL)


def _retried(installation, jobs):
    query = "SELECT count(*) FROM breakers_departure WHERE job_id = ANY(%s) AND state = 'done'"
    return _rows(installation, query, jobs)[0][0]


def _states(installation, jobs):
    return {
        state
        for (state,) in _rows(installation, "SELECT state FROM core_job WHERE id = ANY(%s)", jobs)
    }


def _audited(installation, jobs):
    found = _rows(
        installation,
        "SELECT sum((after::jsonb ->> 'done')::int), count(*) FROM core_auditentry WHERE"
        " action = 'dead_letters.replayed' AND (after::jsonb ->> 'job')::int = ANY(%s)",
        jobs,
    )
    assert found[0][1] == len(jobs)
    return found[0][0]


def _counts(client, job):
    return client.get(f"/api/v1/dlq/jobs/{job}/").json()["counts"]


def _describe_jobs(client, jobs):
    found = [client.get(f"/api/v1/dlq/jobs/{job}/").json() for job in jobs]
    return [(one["state"], one["counts"], one["hold_reason"], one["error"]) for one in found]


def _all_came_back(store, name, sent):
    """Return True if the consumer is done: poisoned messages are dead letters again."""
    stayed = sum(not eligible for _, eligible in sent.values())
    garbage = sum(fields[b"payload"] == GARBAGE for _, fields in store.xrange(f"axiom:{name}"))
    return store.xlen(f"axiom:dlq:{name}") == stayed + garbage


def _rows(installation, query, *values):
    with psycopg.connect(installation.services()["database_owner_url"]) as database:
        return database.execute(query, list(values)).fetchall()


def _id(position):
    return "-".join(str(int(part)) for part in position.split("-"))
