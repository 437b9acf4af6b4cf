"""The dependencies of one client, and the console's configuration of them."""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from switchgear.clock import ConsoleClock
from switchgear.console.follower_thread import start_thread
from switchgear.evaluation.snapshot_store import MAX_EPOCHS
from switchgear.journal import log
from switchgear.policies import documents
from switchgear.policies.dependency import Dependency
from switchgear.policies.dependency_names import NAME_FORMAT, caller_of, suggested_name
from switchgear.policies.documents import EMPTY_CONFIG, ConfigDocument, DependencyConfig

MAX_BREAKERS, MAX_BULKHEADS = 500, 200
"""The console's limits for the breakers and bulkheads of one process."""
MAX_DEPENDENCIES = 10_000
MAX_CALLERS = 4
MAX_LOGGED = 20
CHECK_SECONDS = 1.0
"""Longest interval of the checks for expired overrides: a clock correction can move the expiry."""


class OutdatedDocument(ValueError):
    """Raised for a policy document that is older than the one in force; nothing changes."""


@dataclass(frozen=True)
class CallerPolicies:
    """The console's latest policy document for the calls of one service.

    `epoch` is that of the document; documents of `left_epochs` are refused. `in_force` is the
    latest document that all breakers apply.
    """

    epoch: str | None = None
    left_epochs: tuple[str, ...] = ()
    body: bytes = b""
    document: ConfigDocument = field(default_factory=lambda: ConfigDocument(0, {}))
    in_force: ConfigDocument | None = None


def _ignore(*_args: object) -> None:
    pass


class Registry:
    """All dependencies of a client, with the console's configuration. Thread-safe.

    With `ends_alone`, a thread ends operators' overrides when their time is over; otherwise the
    owner must call :meth:`expire_overrides`. Configurations are selected under the lock and applied
    without it: a breaker's listeners may request another policy, or wait for a thread that does.
    """

    def __init__(self, clock: ConsoleClock, *, ends_alone: bool = True) -> None:
        self.on_caller: Callable[[str], object] = _ignore
        """Called once with each service whose policies are used."""
        self.on_transition: Callable[[], object] = _ignore
        """Called after each state transition of a breaker."""
        self._clock = clock
        self._expires_overrides = ends_alone
        self._dependencies: dict[str, Dependency] = {}
        self._callers: dict[str, CallerPolicies] = {}
        self._logged: set[tuple[str, str]] = set()
        self._is_finalized = False
        self._reset_threading()

    def get_dependency(self, name: str) -> Dependency:
        """Return the dependency called `name`, created at its first use.

        A dependency whose name is not `caller->callee` is not reported. Beyond `MAX_DEPENDENCIES`
        names, each call returns a new dependency without the console's configuration.
        """
        dependency = self._dependencies.get(name)
        if dependency is not None:
            return dependency
        caller = caller_of(name)
        if caller is not None:
            self._add_caller(caller)
        with self._lock:
            dependency = self._dependencies.get(name)
            if dependency is not None:
                return dependency
            time = self._clock.time
            dependency = Dependency(name, time.monotonic, getattr(time, "sleep", None))
            number = len(self._dependencies) + 1
            if number <= MAX_DEPENDENCIES:
                self._dependencies[name] = dependency
                if caller is not None:
                    dependency.on_transition = lambda: self.on_transition()
                    self._set_config(dependency)
        if caller is None and self._may_log(name, "its name"):
            example = suggested_name(name) or "caller->callee, such as core->oracle"
            log.error(
                "switchgear: policy %.200r is not reported, and the console can't configure or"
                " override it: a name must be %s; use %s",
                *(name, NAME_FORMAT, example),
            )
        if number == MAX_BREAKERS + 1:
            self._warn_once(name, f"not reported: only {MAX_BREAKERS} breakers are")
        if number > MAX_DEPENDENCIES:
            self._warn_once(
                name,
                f"more than {MAX_DEPENDENCIES} dependencies: this policy shares no state with"
                " others of the same name",
            )
        dependency.apply_pending()
        if dependency.ends_at is not None:
            self._start_expiry_thread()
        return dependency

    def dependencies(self) -> list[Dependency]:
        """Return the dependencies that are reported to the console, in order of their first use."""
        return [each for name, each in list(self._dependencies.items()) if caller_of(name)]

    def accept(
        self,
        caller: str,
        epoch: str,
        body: bytes,
        left_epochs: tuple[str, ...] = (),
        *,
        on_valid: Callable[[], object] = _ignore,
    ) -> bool:
        """Put the console's policies for calls by `caller` in force; return True if they are new.

        `body` is the document. `left_epochs` are further epochs to refuse. If the document is
        valid, `on_valid` is called before the console's clock is read, so that it can update the
        clock. Raise :class:`documents.InvalidDocument` or :class:`OutdatedDocument`.
        """
        while True:
            before = self.get_policies(caller)
            if (before.epoch, before.body) == (epoch, body):
                on_valid()
                return False
            document = documents.parse_document(body, before.document.dependencies)
            if document.service not in (None, caller):
                raise documents.InvalidDocument("the document belongs to another service")
            with self._lock:
                if self._callers.setdefault(caller, before) is not before:
                    continue  # Another thread put a document in force meanwhile.
                left = _next_left_epochs(before, epoch, document, left_epochs)
                on_valid()
                self._callers[caller] = CallerPolicies(epoch, left, body, document, before.in_force)
                affected = self._dependencies_of(caller)
                for dependency in affected:
                    self._set_config(dependency)
            for dependency in affected:
                dependency.apply_pending()
            self._start_expiry_thread()
            self.version(caller)  # Updates `in_force`.
            for complaint in document.problems:
                self._warn_once(complaint, "this section of its policy was not changed")
            if before.epoch not in (None, epoch):
                self._log_ended_overrides(before, document)
            return True

    def get_policies(self, caller: str) -> CallerPolicies:
        return self._callers.get(caller) or CallerPolicies()

    def version(self, service: str) -> int | None:
        """Return the version of the latest policy document that all breakers of `service` apply.

        Return None if there is none.
        """
        with self._lock:
            known = self._callers.get(service)
            if known is None or known.epoch is None:
                return None
            is_new = known.in_force is not known.document
            if is_new and all(each.is_applied for each in self._dependencies_of(service)):
                known = self._callers[service] = replace(known, in_force=known.document)
            return None if known.in_force is None else known.in_force.version

    def callers(self) -> list[str]:
        return list(self._callers)

    def expire_overrides(self) -> None:
        for dependency in list(self._dependencies.values()):
            dependency.expire_override(self._override_time(dependency.target_config))

    def stop(self) -> None:
        self._stopped.set()

    def stop_from_finalizer(self) -> None:
        """Tell the thread that ends overrides to stop, without taking a lock.

        The code that the finalizer interrupts may hold the lock.
        """
        self._is_finalized = True

    def after_fork(self) -> None:
        """Reset in a forked child, whose breakers start again: apply the configurations again."""
        # The callbacks are the parent's.
        self.on_caller = self.on_transition = _ignore
        was_stopped = self._stopped.is_set()
        self._reset_threading()
        if was_stopped:
            self._stopped.set()
        dependencies = list(self._dependencies.values())
        with self._lock:
            for dependency in dependencies:
                self._set_config(dependency)
        for dependency in dependencies:
            dependency.apply_pending()
        self._start_expiry_thread()

    def _reset_threading(self) -> None:
        # Reentrant, since a signal handler may ask for a policy, too.
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def _add_caller(self, caller: str) -> None:
        with self._lock:
            if caller in self._callers:
                return
            is_followed = len(self._callers) < MAX_CALLERS
            if is_followed:
                self._callers[caller] = CallerPolicies()
        if is_followed:
            self.on_caller(caller)
        else:
            self._warn_once(
                caller,
                f"policies are not received from the console: only {MAX_CALLERS} callers are"
                " followed",
            )

    def _dependencies_of(self, caller: str) -> list[Dependency]:
        dependencies = list(self._dependencies.values())
        return [each for each in dependencies if caller_of(each.name) == caller]

    def _set_config(self, dependency: Dependency) -> None:
        dependencies = self.get_policies(caller_of(dependency.name) or "").document.dependencies
        config = dependencies.get(dependency.name, EMPTY_CONFIG)
        dependency.set_config(config, self._override_time(config))

    def _override_time(self, config: DependencyConfig) -> float:
        """Return the time, in UNIX seconds, by which to judge if the override of `config` is over.

        A wrong clock must not let stopped calls through: `forced_open` ends only by a time that
        recent answers of the console agree on.
        """
        if config.override is None or config.override.mode != "forced_open":
            return self._clock.now()
        known = self._clock.release_now()
        return -math.inf if known is None else known

    def _start_expiry_thread(self) -> None:
        """Start the thread that ends overrides when their time is over, if there are any."""
        with self._lock:
            if self._thread is not None or not self._expires_overrides or self._stopped.is_set():
                return
            if not self._has_overrides():
                return
            problem = "overrides won't end at their expiry"
            self._thread = start_thread("switchgear-overrides", self._run, problem)

    def _has_overrides(self) -> bool:
        return any(each.ends_at is not None for each in list(self._dependencies.values()))

    def _run(self) -> None:
        while not (self._stopped.is_set() or self._is_finalized):
            try:
                self.expire_overrides()
            except Exception:  # The loop must go on for the other overrides.
                log.exception("switchgear: could not end an override")
            with self._lock:
                if not self._has_overrides():
                    self._thread = None
                    return
            now = self._clock.now()
            ends = [at for each in self.dependencies() if (at := each.ends_at) is not None]
            left = min((at - now for at in ends if at > now), default=CHECK_SECONDS)
            self._stopped.wait(min(max(left, 0.01), CHECK_SECONDS))

    def _warn_once(self, what: str, why: str) -> None:
        if self._may_log(what, why):
            log.warning("switchgear: %.200s: %s", what, why)

    def _log_ended_overrides(self, before: CallerPolicies, after: ConfigDocument) -> None:
        now = self._clock.now()
        ended = [
            name
            for name, config in before.document.dependencies.items()
            if config.is_forced(now)
            and not after.dependencies.get(name, EMPTY_CONFIG).is_forced(now)
        ]
        if ended:
            log.warning(
                "switchgear: a new epoch of the console ends the overrides of %d dependencies:"
                " %.500s; force those again that must stay forced",
                *(len(ended), ", ".join(sorted(ended))),
            )

    def _may_log(self, what: str, why: str) -> bool:
        if len(self._logged) >= MAX_LOGGED or (what, why) in self._logged:
            return False
        self._logged.add((what, why))
        return True


def _next_left_epochs(
    before: CallerPolicies, epoch: str, document: ConfigDocument, left_epochs: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the replaced epochs, to be refused from now on, once `document` is in force.

    Raise :class:`OutdatedDocument` if the document is older than the one in force.
    """
    left = before.left_epochs or left_epochs
    if before.epoch not in (None, epoch):
        if epoch in left:
            raise OutdatedDocument("outdated policies")
        left = (*left, str(before.epoch))
    elif before.epoch is not None and document.version < before.document.version:
        raise OutdatedDocument("outdated policies")
    return left[-MAX_EPOCHS:]
