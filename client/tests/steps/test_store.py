"""The file of jobs: its permissions, concurrent writers, and write failures."""

import os
import pickle
import sqlite3
import stat
import threading

import pytest

from switchgear.steps import (
    EffectRepeated,
    Job,
    JobCompleted,
    JobRecord,
    JobStatus,
    JobTaken,
    KeyTaken,
    LeaseLost,
    NotApproved,
    NotKept,
    Paused,
    PlanChanged,
    Runner,
    SQLiteStore,
    Step,
)


def job(**more):
    return JobRecord(**{"id": "j", "name": "job", "plan": ("a",), "created_at": 1.0, **more})


def test_files_are_only_their_owners(tmp_path):
    before = os.umask(0)
    try:
        store = SQLiteStore(tmp_path / "jobs.db")
        store.add(job())
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"jobs.db": 0o600, "jobs.db-wal": 0o600, "jobs.db-shm": 0o600}
    store.close()


def test_link_is_not_followed(tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "other.db")
    with pytest.raises(OSError, match="link"):
        SQLiteStore(tmp_path / "link.db").add(job())
    assert not (tmp_path / "other.db").exists()


def test_only_the_last_lease_writes(bench):
    store = bench.store
    store.add(job())
    first = store.claim("j", "w1", 100.0, 60.0, also_failed=False)
    assert store.claim("j", "w2", 159.0, 60.0, also_failed=False) is None
    second = store.claim("j", "w2", 160.0, 60.0, also_failed=False)

    for write in (
        lambda: store.save(first, job(status=JobStatus.COMPLETED)),
        lambda: store.beat(first, 161.0),
    ):
        with pytest.raises(LeaseLost):
            write()
    found = store.look("j").job
    assert (found.status, found.epoch, found.worker, found.heartbeat) == (
        JobStatus.RUNNING, 2, "w2", 160.0,
    )  # fmt: skip

    store.save(second, job(status=JobStatus.PAUSED))
    with pytest.raises(LeaseLost):
        store.save(second, job(status=JobStatus.RUNNING))


def test_sign_of_life_from_the_future_does_not_hold_a_job_for_ever(bench):
    bench.store.add(job())
    bench.store.claim("j", "w1", 1e9, 60.0, also_failed=False)
    assert bench.store.due(("job",), 1000.0, 60.0, 5) == []
    assert bench.store.look("j").job.heartbeat == 1000.0
    assert bench.store.due(("job",), 1059.0, 60.0, 5) == []
    assert bench.store.due(("job",), 1060.0, 60.0, 5) == ["j"]


def test_clock_set_back_takes_no_job_from_a_live_worker(bench):
    taken, now = [], [1000.0]

    def long(context):
        for moment in (600.0, 899.0):
            now[0] = moment
            taken.append(runner.run_due())
        return "done"

    runner = bench.runner(Step(name="long", run=long), clock=lambda: now[0])
    job = runner.run(runner.add("job"))
    assert (job.status, taken) == (JobStatus.COMPLETED, [[], []])


def test_many_threads_claim_and_one_has_it(bench):
    bench.store.add(job())
    leases, gate = [], threading.Barrier(10)

    def claim():
        store = SQLiteStore(bench.path)
        gate.wait()
        leases.append(store.claim("j", "w", 1.0, 60.0, also_failed=False))
        store.close()

    threads = [threading.Thread(target=claim) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(leases) == 10
    assert [lease.epoch for lease in leases if lease] == [1]


def test_rows_are_written_all_or_none(bench):
    store = bench.store
    store.add(job())
    lease = store.claim("j", "w1", 1.0, 60.0, also_failed=False)
    with pytest.raises(KeyError):
        store.save(lease, job(current=5), object())
    assert store.look("j").job.current == 0


def test_store_that_fails_pauses_and_fails_no_step(bench):
    compensated = []

    def break_store(context):
        with sqlite3.connect(bench.path) as other:
            other.execute("ALTER TABLE effects RENAME TO away")
        try:
            context.once("mail", "there", "k", lambda: pytest.fail("without an intent"))
        finally:
            with sqlite3.connect(bench.path) as other:
                other.execute("ALTER TABLE away RENAME TO effects")
            other.close()

    runner = bench.runner(Step(name="step", run=break_store, compensate=compensated.append))
    paused = runner.run(runner.add("job"))
    assert paused.status is JobStatus.PAUSED
    assert paused.reason.startswith("NotKept: the job store failed: OperationalError")
    assert compensated == []


def test_store_that_fails_at_the_start_leaves_the_job_to_others(bench):
    runner = bench.runner(Step(name="step", run=lambda context: "done"))
    job_id = runner.add("job")
    look, looks = bench.store.look, []

    class Flaky(SQLiteStore):
        def look(self, job_id):
            looks.append(job_id)
            if len(looks) == 2:
                raise sqlite3.OperationalError("disk I/O error")
            return look(job_id)

    flaky = Flaky(bench.path)
    worker = Runner(flaky, [Job("job", (Step(name="step", run=print),))], clock=bench.time.wall)
    with pytest.raises(sqlite3.OperationalError):
        worker.run(job_id)
    (done,) = runner.run_due()
    assert done.status is JobStatus.COMPLETED
    flaky.close()


@pytest.mark.services
def test_child_of_a_fork_has_a_connection_of_its_own(bench):
    bench.store.add(job())
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            bench.store.add(job(id="of the child"))
            os.write(write, b"added")
        finally:
            os._exit(0)
    os.close(write)
    assert os.read(read, 10) == b"added"
    os.close(read)
    os.waitpid(child, 0)
    assert bench.store.look("of the child") is not None
    assert bench.store.look("j") is not None


def test_forgotten_are_only_those_that_are_over(bench):
    runner = bench.runner(Step(name="step", run=lambda context: context.input))
    over, new = runner.run(runner.add("job")).id, runner.add("job")
    assert bench.store.forget(bench.time.wall()) == 0
    bench.time.advance(1)
    assert bench.store.forget(bench.time.wall()) == 1
    assert bench.store.look(over) is None
    assert bench.store.look(new) is not None


@pytest.mark.parametrize(
    "error",
    [
        EffectRepeated("k"), JobCompleted("j"), JobTaken("j"), KeyTaken("s", "j"), LeaseLost("j"),
        NotApproved("s"), NotKept("disk"), Paused("why", 3.0), PlanChanged("j", "job"),
    ],
)  # fmt: skip
def test_errors_come_whole_out_of_another_process(error):
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.args, str(copy)) == (type(error), error.args, str(error))
