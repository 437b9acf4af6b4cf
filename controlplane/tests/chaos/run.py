"""A run: an installation with writers and readers, the faults of a seed, and the judgment."""

import itertools
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import httpx
import psycopg

from controlplane.notify.delivery.tests.fake_slack import FakeSlack
from controlplane.tests.chaos import judge
from controlplane.tests.chaos.faults import Missed, Stage
from controlplane.tests.chaos.judge import Decision, Operation, Resource, Snapshot
from controlplane.tests.chaos.plan import KINDS, Fault, Kind, make_plan
from controlplane.tests.chaos.readers import Reader, Service, Unread
from controlplane.tests.chaos.truth import Row, Truth, read_row
from controlplane.tests.chaos.writers import (
    Writer,
    engage,
    perform,
)
from controlplane.tests.installation import Installation, wait_until

READY_SECONDS = 120.0
CONVERGE_SECONDS = 20.0
"""Time from the last change until the last reader has it, once all faults are over."""
MAX_ENGAGE_SECONDS = 5.0
"""The promise is 2 s; this leaves room for a busy machine."""
MAX_SHOWN = 12
TRAIL = "SELECT id, action, target, request_id, after FROM core_auditentry ORDER BY id"
SENT = (
    "SELECT id, subject FROM core_outboxmessage WHERE destination = 'slack' AND state = 'sent'"
    " AND attempts > 0 ORDER BY id"
)


@dataclass
class Happened:
    """A fault as it was inflicted, in monotonic seconds; `recovered` is when changes went on."""

    fault: Fault
    began: float
    ended: float
    recovered: float
    missed: str = ""

    def __str__(self) -> str:
        after = self.recovered - self.began
        return f"{self.fault}" + (
            f" (missed: {self.missed})" if self.missed else f", {after:.1f} s"
        )


@dataclass
class Run:
    """The participants of a run, and its results."""

    seed: int
    installation: Installation
    stage: Stage
    slack: FakeSlack
    token: str
    writers: list[Writer]
    probe: Writer
    readers: list[Reader | Service]
    unread: Unread
    happened: list[Happened] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    figures: dict[str, str] = field(default_factory=dict)

    def inflict(self, seconds: float, kinds: Mapping[str, Kind]) -> None:
        """Inflict one fault after another until the time is over."""
        ends = time.monotonic() + seconds
        for fault in make_plan(self.seed, kinds):
            time.sleep(fault.pause)
            if time.monotonic() > ends:
                return
            began, missed = time.monotonic(), ""
            try:
                self.stage.inflict(fault)
            except Missed as error:
                missed = str(error)
            ended = time.monotonic()
            if kinds[fault.kind].stops_writes:
                wait_until(self._takes_changes, READY_SECONDS, self._explain)
            self.happened.append(Happened(fault, began, ended, time.monotonic(), missed))
            print(self.happened[-1], flush=True)

    def converge(self) -> None:
        """Wait until all is well again, and everybody has the last change."""
        took = wait_until(self._is_ready, READY_SECONDS, self._explain)
        for one in (*self.writers, self.probe):
            one.stop()
        for one in (*self.writers, self.probe):
            one.join()
        with self.installation.client(self.token) as client:
            last = perform(
                client,
                itertools.repeat(self.installation.url),
                engage("feature:last", random.Random(0)),
                self.problems,
            )
        self.figures["ready again"] = f"{took:.1f} s after the last fault"
        behind = [one.name for one in self.readers]
        slowest = ""

        def all_have() -> bool:
            nonlocal slowest
            slowest = ", ".join(behind)
            behind[:] = [one.name for one in self.readers if one.version < (last.version or 0)]
            return not behind

        try:
            took = wait_until(all_have, CONVERGE_SECONDS)
        except AssertionError:
            self.problems.append(f"without version {last.version}: {behind}")
        else:
            self.figures["last change read by all"] = f"after {took:.1f} s, last by {slowest}"

    def drain(self) -> None:
        """Wait until no message is pending: Slack takes one a second."""
        waiting = self._pending()
        try:
            took = wait_until(lambda: self._pending() == 0, waiting * 1.2 + 60)
        except AssertionError:
            self.problems.append(f"{self._pending()} messages are pending still")
        else:
            self.figures["outbox drained"] = f"{waiting} messages in {took:.1f} s"

    def end(self) -> None:
        for one in (*self.readers, self.unread):
            one.stop()
        for one in (*self.readers, self.unread):
            one.join()

    def judge(self) -> None:
        """Compare every answer with the trail; problems and figures are noted."""
        rows, truth = self._trail()
        snapshots = [one for reader in self.readers for one in reader.snapshots]
        decisions = [one for reader in self.readers for one in reader.decisions]
        resources = [one for reader in self.readers for one in reader.resources]
        operations = [one for writer in (*self.writers, self.probe) for one in writer.operations]
        remembering = [one for one in self.readers if one.memory]
        forgetful = [one for one in self.readers if not one.memory]
        problems = [
            *truth.problems,
            *judge.compare_snapshots(truth, snapshots),
            *judge.compare_decisions(truth, decisions),
            *judge.compare_resources(truth, resources),
            *(f"step back: {one}" for one in _steps_back(remembering)),
            *judge.compare_operations(operations, rows),
            *judge.wrong_ramp_steps(truth),
        ]
        for one in (*self.writers, self.probe, *self.readers):
            problems += one.problems
        problems += self._messages()
        problems += self._engagements()
        verified = self.installation.manage("audit", "verify")
        if "intact" not in verified:
            problems.append(verified)
        self.problems += problems
        acknowledged = [one for one in operations if one.status in (200, 202)]
        retried = sum(one.attempts > 1 for one in operations)
        self.figures |= {
            "faults": f"{sum(not one.missed for one in self.happened)}",
            "versions": f"{truth.newest}",
            "changes": (
                f"{len(acknowledged)} acknowledged, {len(operations)} asked, {retried} retried"
            ),
            "answers": (
                f"{len(snapshots)} snapshots, {len(decisions)} decisions,"
                f" {len(resources)} resources"
            ),
            "steps back without memory": f"{len(_steps_back(forgetful))}",
        }
        for one in _steps_back(forgetful)[:MAX_SHOWN]:
            print("step back without memory:", one)
        for reader in self.readers:
            if not (reader.snapshots or reader.decisions or reader.resources):
                self.problems.append(f"{reader.name} never had an answer")

    def report(self) -> str:
        """Return the figures and the problems, with the parameters to repeat the run."""
        lines = [f"seed {self.seed}", *(f"{name}: {said}" for name, said in self.figures.items())]
        if self.problems:
            lines.append(f"{len(self.problems)} problems; run again with CHAOS_SEED={self.seed}")
            lines += self.problems[:MAX_SHOWN]
            lines += [f"  {one}" for one in self.happened]
        return "\n".join(lines)

    def _engagements(self) -> list[str]:
        """Return engagements that took too long, although nothing they need was faulty."""
        engaged = [
            one
            for one in self.probe.operations
            if one.action == "switch.engaged" and one.status == 200
        ]
        windows = [
            (one.began, one.recovered)
            for one in self.happened
            if KINDS[one.fault.kind].stops_writes
        ]
        calm = judge.undisturbed(engaged, windows)
        self.figures["engage"] = _times(engaged)
        self.figures["engage while PostgreSQL and web are up"] = _times(calm)
        return [
            f"engaging took {one.ended - one.began:.1f} s although PostgreSQL and web were up"
            f" ({one.attempts} attempts): {self._list_faults_near(one)}"
            for one in calm
            if one.ended - one.began > MAX_ENGAGE_SECONDS
        ]

    def _list_faults_near(self, operation: Operation) -> str:
        found = [
            str(one.fault)
            for one in self.happened
            if one.began - 3 < operation.ended and operation.began < one.recovered + 3
        ]
        return ", ".join(found)

    def _messages(self) -> list[str]:
        with self._connect() as database:
            sent = database.execute(SENT).fetchall()
        metadata = [one.get("metadata", {}) for one in self.slack.messages]
        arrived = [one["event_payload"]["message"] for one in metadata if one]
        problems, repeated = judge.compare_messages(sent, arrived)
        self.figures["messages"] = f"{len(sent)} sent, {repeated} repeated"
        return problems

    def _trail(self) -> tuple[Sequence[Row], Truth]:
        with self._connect() as database:
            rows = [read_row(*row) for row in database.execute(TRAIL)]
            salts = dict(database.execute("SELECT id, salt FROM switches_episode").fetchall())
            published = database.execute("SELECT epoch, version FROM switches_publication")
            epoch, version = published.fetchall()[0]
        truth = Truth(str(epoch), rows, salts)
        if truth.newest != version:
            truth.problems.append(f"version {version} is published, {truth.newest} is audited")
        return rows, truth

    def _pending(self) -> int:
        query = "SELECT count(*) FROM core_outboxmessage WHERE state = 'pending'"
        with self._connect() as database:
            return int(database.execute(query).fetchall()[0][0])

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self.installation.services()["database_owner_url"])

    def _takes_changes(self) -> bool:
        try:
            return httpx.get(f"{self.installation.url}/health/ready", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def _is_ready(self) -> bool:
        return self.installation.is_ready()

    def _explain(self) -> str:
        happened = "\n".join(str(one) for one in self.happened)
        return f"seed {self.seed}\n{happened}\n{self.installation.read_output()}"


def _steps_back(readers: Sequence[Reader | Service]) -> list[str]:
    answers: list[Snapshot | Decision | Resource] = []
    for reader in readers:
        answers += [*reader.snapshots, *reader.decisions, *reader.resources]
    return judge.steps_back(answers)


def _times(operations: Sequence[Operation]) -> str:
    seconds = [one.ended - one.began for one in operations]
    p50, p99, most = (judge.percentile(seconds, share) for share in (0.5, 0.99, 1.0))
    return f"{len(seconds)}, p50 {p50:.3f} s, p99 {p99:.3f} s, max {most:.3f} s"
