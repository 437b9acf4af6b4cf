"""The dependencies of one client, and what the console says of them."""

import logging
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from switchgear.clock import ConsoleClock
from switchgear.evaluation.snapshot_store import MAX_EPOCHS
from switchgear.policies import documents
from switchgear.policies.dependency import Dependency
from switchgear.policies.documents import NOTHING, Document, Said
from switchgear.policies.names import GRAMMAR, caller_of, suggested_name

MAX_BREAKERS, MAX_BULKHEADS = 500, 200
"""As many as the console takes of one process."""
MAX_DEPENDENCIES = 10_000
MAX_CALLERS = 4
MAX_COMPLAINTS = 20
LOOK_SECONDS = 1.0
"""An override that ends by itself is looked after that often, also when it has ended: the console's
time may turn out to be another one."""

log = logging.getLogger("switchgear")


class Past(ValueError):
    """A document that is older than the one in force, which changes nothing."""


@dataclass(frozen=True)
class Caller:
    """What the console said last of the calls of one service; `epoch` is that of its database, and
    those that were left are never returned to. `in_force` is what all breakers go by already."""

    epoch: str | None = None
    left_epochs: tuple[str, ...] = ()
    body: bytes = b""
    document: Document = field(default_factory=lambda: Document(0, {}))
    in_force: Document | None = None

    @property
    def version(self) -> int | None:
        return None if self.epoch is None else self.document.version


def _nothing(*_told: object) -> None:
    pass


class Registry:
    """Safe to use from any thread. Unless it `ends_alone`, who holds it ends overrides, by
    :meth:`expire`. What is to hold is decided under its lock, and put in force without it: a
    breaker's watchers may want another policy, or wait for who does."""

    def __init__(self, clock: ConsoleClock, *, ends_alone: bool = True) -> None:
        self.on_caller: Callable[[str], object] = _nothing
        """Is told of each service whose policies are wanted, once."""
        self.on_step: Callable[[], object] = _nothing
        """Is told that a breaker has changed its state."""
        self._clock = clock
        self._ends_alone = ends_alone
        self._dependencies: dict[str, Dependency] = {}
        self._callers: dict[str, Caller] = {}
        self._complaints: set[tuple[str, str]] = set()
        self._is_abandoned = False
        self._fresh()

    def dependency(self, name: str) -> Dependency:
        """The one of that name. Of one that is no `caller->callee` nobody outside hears, and one of
        too many is nobody else's, and follows nothing."""
        found = self._dependencies.get(name)
        if found is not None:
            return found
        caller = caller_of(name)
        if caller is not None:
            self._want(caller)
        with self._lock:
            found = self._dependencies.get(name)
            if found is not None:
                return found
            time = self._clock.time
            found = Dependency(name, time.monotonic, getattr(time, "sleep", None))
            number = len(self._dependencies) + 1
            if number <= MAX_DEPENDENCIES:
                self._dependencies[name] = found
                if caller is not None:
                    found.on_step = lambda: self.on_step()
                    self._hand(found)
        if caller is None:
            self._complain_of_name(name)
        if number == MAX_BREAKERS + 1:
            self._complain(name, f"no more than {MAX_BREAKERS} breakers are reported")
        if number > MAX_DEPENDENCIES:
            self._complain(name, f"that is one of more than {MAX_DEPENDENCIES}: it is alone")
        found.settle()
        if found.ends_at is not None:
            self._see_to_ends()
        return found

    def dependencies(self) -> list[Dependency]:
        """Those that the console can be told of, in the order in which they were first wanted."""
        return [each for name, each in list(self._dependencies.items()) if caller_of(name)]

    def accept(
        self,
        caller: str,
        epoch: str,
        body: bytes,
        left_epochs: tuple[str, ...] = (),
        *,
        hear: Callable[[], object] = _nothing,
    ) -> bool:
        """Put in force what the console says of the calls of `caller`; whether that is news.
        `left_epochs` are some never to return to. `hear` is called once it is clear that the
        console says so, and before it is looked at what time it is there.

        Raises :class:`documents.Unreadable` for what is no such document, and :class:`Past`.
        """
        while True:
            before = self.document(caller)
            if (before.epoch, before.body) == (epoch, body):
                hear()
                return False
            read = documents.read(body, before.document.dependencies)
            if read.service not in (None, caller):
                raise documents.Unreadable("it is of another service")
            with self._lock:
                if self._callers.setdefault(caller, before) is not before:
                    continue  # Another thread was quicker, and what it said counts, too.
                left = _left(before, epoch, read, left_epochs)
                hear()
                self._callers[caller] = Caller(epoch, left, body, read, before.in_force)
                told = self._of(caller)
                for found in told:
                    self._hand(found)
            for found in told:
                found.settle()
            self._see_to_ends()
            self.version(caller)  # Sees whether it is in force now.
            for complaint in read.complaints:
                self._complain(complaint, "that part of its policy is left as it was")
            if before.epoch not in (None, epoch):
                self._complain_of_epoch(before, read)
            return True

    def document(self, caller: str) -> Caller:
        """What was said last of the calls of a service."""
        return self._callers.get(caller) or Caller()

    def version(self, service: str) -> int | None:
        """Of what is in force in all breakers of `service`; None if there is nothing of it."""
        with self._lock:
            known = self._callers.get(service)
            if known is None or known.epoch is None:
                return None
            is_new = known.in_force is not known.document
            if is_new and all(each.is_settled for each in self._of(service)):
                known = self._callers[service] = replace(known, in_force=known.document)
            return None if known.in_force is None else known.in_force.version

    def callers(self) -> list[str]:
        """The services whose policies are wanted."""
        return list(self._callers)

    def expire(self) -> None:
        """End the overrides whose time is over."""
        for found in list(self._dependencies.values()):
            found.expire(self._now(found.wanted))

    def stop(self) -> None:
        """From now on no override ends by itself."""
        self._stopped.set()

    def abandon(self) -> None:
        """As :meth:`stop`, a moment later, for a finalizer: whoever is interrupted by it may hold
        any lock."""
        self._is_abandoned = True

    def after_fork(self) -> None:
        """In a child: what the console said still holds, for breakers that begin anew; also what a
        thread of the parent was about to put in force."""
        # Those who are told are the parent's.
        self.on_caller = self.on_step = _nothing
        was_stopped = self._stopped.is_set()
        self._fresh()
        if was_stopped:
            self._stopped.set()
        there = list(self._dependencies.values())
        with self._lock:
            for found in there:
                self._hand(found)
        for found in there:
            found.settle()
        self._see_to_ends()

    def _fresh(self) -> None:
        # One that its holder may take again: a signal's handler may want a policy, too.
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def _want(self, caller: str) -> None:
        with self._lock:
            if caller in self._callers:
                return
            is_followed = len(self._callers) < MAX_CALLERS
            if is_followed:
                self._callers[caller] = Caller()
        if is_followed:
            self.on_caller(caller)
        else:
            self._complain(caller, f"its policies are the code's: {MAX_CALLERS} are followed")

    def _of(self, caller: str) -> list[Dependency]:
        there = list(self._dependencies.values())
        return [each for each in there if caller_of(each.name) == caller]

    def _hand(self, found: Dependency) -> None:
        """What it is to settle next."""
        dependencies = self.document(caller_of(found.name) or "").document.dependencies
        said = dependencies.get(found.name, NOTHING)
        found.want(said, self._now(said))

    def _now(self, said: Said) -> float:
        """Return the time that may end an override. A wrong clock must not let stopped calls
        through: `forced_open` ends only by a time that recent answers of the console agree on."""
        if said.override is None or said.override.mode != "forced_open":
            return self._clock.now()
        known = self._clock.release_now()
        return -math.inf if known is None else known

    def _see_to_ends(self) -> None:
        """A thread for as long as there is an override that ends by itself. It begins once that is
        in force, so that it is the caller who has put it in force."""
        with self._lock:
            if self._thread is not None or not self._ends_alone or self._stopped.is_set():
                return
            if not self._has_ends():
                return
            thread = threading.Thread(target=self._run, name="switchgear-overrides", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                log.error("switchgear: overrides don't end by themselves: %s", error)
            else:
                self._thread = thread

    def _has_ends(self) -> bool:
        return any(each.ends_at is not None for each in list(self._dependencies.values()))

    def _run(self) -> None:
        while not (self._stopped.is_set() or self._is_abandoned):
            try:
                self.expire()
            except Exception:  # The loop that everything else relies on.
                log.exception("switchgear: an override could not be ended")
            with self._lock:
                if not self._has_ends():
                    self._thread = None
                    return
            now = self._clock.now()
            ends = [at for each in self.dependencies() if (at := each.ends_at) is not None]
            left = min((at - now for at in ends if at > now), default=LOOK_SECONDS)
            self._stopped.wait(min(max(left, 0.01), LOOK_SECONDS))

    def _complain(self, what: str, why: str) -> None:
        if self._is_first(what, why):
            log.warning("switchgear: %.200s: %s", what, why)

    def _complain_of_name(self, name: str) -> None:
        if self._is_first(name, "its name"):
            log.error(
                "switchgear: policy %.200r is not reported, and the console can't configure or"
                " override it: names are %s; write %s",
                *(name, GRAMMAR, suggested_name(name) or "caller->callee, such as core->oracle"),
            )

    def _complain_of_epoch(self, before: Caller, after: Document) -> None:
        was, now = before.document.dependencies, self._clock.now()
        if ended := documents.ended_overrides(was, after.dependencies, now):
            log.warning(
                "switchgear: a new epoch of the console ends the overrides of %d dependencies:"
                " %.500s; force again what must stay forced",
                *(len(ended), ", ".join(sorted(ended))),
            )

    def _is_first(self, what: str, why: str) -> bool:
        """Return True if this is to be logged: each once, and a limited number."""
        if len(self._complaints) >= MAX_COMPLAINTS or (what, why) in self._complaints:
            return False
        self._complaints.add((what, why))
        return True


def _left(
    before: Caller, epoch: str, read: Document, left_epochs: tuple[str, ...]
) -> tuple[str, ...]:
    """The epochs that are left for good if that comes next. Raises :class:`Past`."""
    left = before.left_epochs or left_epochs
    if before.epoch not in (None, epoch):
        if epoch in left:
            raise Past("its policies are from the past")
        left = (*left, str(before.epoch))
    elif before.epoch is not None and read.version < before.document.version:
        raise Past("its policies are from the past")
    return left[-MAX_EPOCHS:]
