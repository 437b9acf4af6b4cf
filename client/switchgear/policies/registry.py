"""The dependencies of one client, and what the console says of them."""

import logging
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from switchgear.clock import ConsoleClock
from switchgear.policies import documents
from switchgear.policies.dependency import Dependency
from switchgear.policies.documents import NOTHING, Document, Said

MOST_BREAKERS, MOST_BULKHEADS = 500, 200
"""As many as the console takes of one process."""
MOST_CALLERS = 4
MOST_EPOCHS = 1000
MOST_COMPLAINTS = 20
LOOK_SECONDS = 1.0
"""An override that will end by itself is looked after that often: the console's time may turn out
to be another one."""
_NAME = re.compile(r"([a-z0-9-]{1,60})->[a-z0-9-]{1,60}", re.ASCII)

log = logging.getLogger("switchgear")


class Past(ValueError):
    """A document that is older than the one in force, which changes nothing."""


@dataclass
class Caller:
    """What the console said last of the calls of one service; `epoch` is that of its database, and
    those that were left are never returned to."""

    epoch: str | None = None
    left_epochs: tuple[str, ...] = ()
    body: bytes = b""
    document: Document = field(default_factory=lambda: Document(0, {}))

    @property
    def version(self) -> int | None:
        return None if self.epoch is None else self.document.version


class Registry:
    """Safe to use from any thread. Unless it `ends_alone`, who holds it ends overrides, by
    :meth:`expire`."""

    def __init__(self, clock: ConsoleClock, *, ends_alone: bool = True) -> None:
        self.on_caller: Callable[[str], object] = lambda _caller: None
        """Is told of each service whose policies are wanted, once."""
        self.on_step: Callable[[], object] = lambda: None
        """Is told that a breaker has changed its state."""
        self._clock = clock
        self._ends_alone = ends_alone
        self._dependencies: dict[str, Dependency] = {}
        self._callers: dict[str, Caller] = {}
        self._complaints = 0
        self._is_abandoned = False
        self._fresh()

    def dependency(self, name: str) -> Dependency:
        """The one of that name. Of one that is no `caller->callee` nobody outside hears."""
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
            found = Dependency(name, self._clock.time.monotonic)
            if caller is None:
                self._complain(name, "that is no caller->callee, such as core->oracle")
            else:
                found.on_step = lambda: self.on_step()
                self._tell(found)
            self._dependencies[name] = found
            if len(self._dependencies) == MOST_BREAKERS + 1:
                self._complain(name, f"no more than {MOST_BREAKERS} breakers are reported")
            return found

    def dependencies(self) -> list[Dependency]:
        """Those that the console can be told of, in the order in which they were first wanted."""
        return [each for name, each in list(self._dependencies.items()) if caller_of(name)]

    def accept(
        self, caller: str, epoch: str, body: bytes, left_epochs: tuple[str, ...] = ()
    ) -> bool:
        """Put in force what the console says of the calls of `caller`; whether that is news.
        `left_epochs` are some never to return to.

        Raises :class:`documents.Unreadable` for what is no such document, and :class:`Past`.
        """
        with self._lock:
            known = self._callers.setdefault(caller, Caller())
            if (known.epoch, known.body) == (epoch, body):
                return False
            read = documents.read(body, known.document.dependencies)
            known.left_epochs = known.left_epochs or left_epochs
            if known.epoch not in (None, epoch):
                if epoch in known.left_epochs:
                    raise Past("its policies are from the past")
                known.left_epochs = (*known.left_epochs, str(known.epoch))[-MOST_EPOCHS:]
            elif known.epoch is not None and read.version < known.document.version:
                raise Past("its policies are from the past")
            known.epoch, known.body, known.document = epoch, body, read
            for complaint in read.complaints:
                self._complain(complaint, "that part of its policy is left as it was")
            for found in list(self._dependencies.values()):
                if caller_of(found.name) == caller:
                    self._tell(found)
            self._see_to_ends()
        return True

    def known(self, caller: str) -> Caller:
        """What is in force of the calls of a service."""
        return self._callers.get(caller, Caller())

    def version(self, service: str) -> int | None:
        """Of what is in force: that of `service`, or of whose calls are looked after here else."""
        callers = self._callers
        known = callers.get(service) or next(iter(callers.values()), None)
        return None if known is None else known.version

    def callers(self) -> list[str]:
        """The services whose policies are wanted."""
        return list(self._callers)

    def expire(self) -> None:
        """End the overrides whose time is over."""
        now = self._clock.now()
        for found in list(self._dependencies.values()):
            found.expire(now)

    def stop(self) -> None:
        """From now on no override ends by itself."""
        self._stopped.set()

    def abandon(self) -> None:
        """As :meth:`stop`, a moment later, for a finalizer: whoever is interrupted by it may hold
        any lock."""
        self._is_abandoned = True

    def after_fork(self) -> None:
        """In a child: what the console said still holds, for breakers that begin anew."""
        was_stopped = self._stopped.is_set()
        self._fresh()
        if was_stopped:
            self._stopped.set()
        with self._lock:
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
            if len(self._callers) >= MOST_CALLERS:
                self._complain(caller, f"the policies of {MOST_CALLERS} other services are")
                return
            self._callers[caller] = Caller()
        self.on_caller(caller)

    def _tell(self, found: Dependency) -> None:
        known = self._callers.get(caller_of(found.name) or "")
        said: Mapping[str, Said] = {} if known is None else known.document.dependencies
        found.say(said.get(found.name, NOTHING), self._clock.now())
        self._see_to_ends()

    def _see_to_ends(self) -> None:
        """A thread for as long as there is an override that ends by itself."""
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
            ends = [at for each in self.dependencies() if (at := each.ends_at) is not None]
            left = min(ends, default=0.0) - self._clock.now()
            self._stopped.wait(min(max(left, 0.01), LOOK_SECONDS))

    def _complain(self, what: str, why: str) -> None:
        if self._complaints < MOST_COMPLAINTS:
            self._complaints += 1
            log.warning("switchgear: %.200s: %s", what, why)


def caller_of(name: str) -> str | None:
    """The service whose calls these are; None if that is no name the console knows."""
    found = _NAME.fullmatch(name)
    return None if found is None else found[1]
