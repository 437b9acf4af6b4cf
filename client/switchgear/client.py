"""The client of the console that a service creates."""

import os
from collections.abc import Callable, Iterable
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from switchgear import async_backend, lifecycle
from switchgear.clock import ConsoleClock, SystemTime, Time
from switchgear.evaluation.decisions import Decision
from switchgear.evaluation.keys import Key
from switchgear.evaluation.snapshot_store import SnapshotStore
from switchgear.guards import Guard, KeyOf, Keys, OnEngage, Unknown
from switchgear.query_check import Query, check_query
from switchgear.sli import SLI, Indicators
from switchgear.status import Status

if TYPE_CHECKING:
    from switchgear.console.bootstrap import BootstrapSource
    from switchgear.console.change_notifier import ChangeCallback
    from switchgear.console.timings import Timings
    from switchgear.patterns.breaker import Breaker
    from switchgear.patterns.bulkhead import Bulkhead
    from switchgear.patterns.parameters import BulkheadParameters, Tier
    from switchgear.policies.arguments import BreakerArguments, PolicyArguments
    from switchgear.policies.dependency import Dependency
    from switchgear.policies.policy import Policy


class Switchgear:
    """A client of the console: decides in memory, within a microsecond, if a call is allowed.

        gear = Switchgear("https://switchgear.example", token, service="core")
        if gear.allowed(feature="chat", targeting_key=user_id): ...

    Two daemon threads keep the client up to date; no failure of the console is raised into the
    service.

    `url` is the console's base URL; without one, only forced switches are engaged. `token` needs
    the scope `switches:read`, and `report:write` for reports. `service` and `instance` name this
    process on the console's screens. An `offline` client never contacts the console, and uses its
    copy on disk and its bootstrap.

    The last good snapshot is stored in the folder `state_dir`, unless that is None. `bootstrap` is
    a snapshot to use until the console has answered: a mapping, a path, or a URL, for which the
    constructor waits at most two seconds. `force_engaged` are ids of switches that are engaged
    regardless of the console, in addition to the ids in `SWITCHGEAR_FORCE_ENGAGED`.

    With `public_key`, one or more of the console's public keys, only snapshots with a valid
    signature are put in force; without the extra `switchgear[signed]` this raises
    :class:`ImportError`. `fallback_url` is a file with the signed snapshot, which is read while the
    console does not answer.

    Raise :class:`ValueError` or :class:`TypeError` for invalid arguments. :meth:`from_env` does not
    raise for invalid environment variables.
    """

    def __init__(
        self,
        url: str | None,
        token: str = "",
        *,
        service: str = "unnamed",
        instance: str | None = None,
        state_dir: str | os.PathLike[str] | Literal["default"] | None = "default",
        force_engaged: Iterable[str] = (),
        bootstrap: "BootstrapSource | None" = None,
        stream: bool = True,
        reports: bool = True,
        offline: bool = False,
        public_key: str | Iterable[str] | None = None,
        fallback_url: str | None = None,
        time: Time | None = None,
    ) -> None:
        # All that a client needs is imported here and in `_wire`, before its threads start: if the
        # process forks while a thread imports a module, the child can never import it, because it
        # waits for a lock whose holder does not exist there.
        from switchgear.console.bootstrap import Bootstrap
        from switchgear.console.change_notifier import ChangeNotifier
        from switchgear.policies import policy as _policy  # noqa: F401
        from switchgear.policies.registry import Registry
        from switchgear.settings import make_settings
        from switchgear.uwsgi import warn_without_threads

        self._settings, self._problems = make_settings(
            url=url,
            token=token,
            service=service,
            instance=instance,
            state_dir=state_dir,
            force_engaged=force_engaged,
            stream=stream,
            reports=reports,
            offline=offline,
            public_key=public_key,
            fallback_url=fallback_url,
        )
        self._store = SnapshotStore(ConsoleClock(time or SystemTime()), self._settings.forced)
        self._bootstrap = Bootstrap(bootstrap, self._store, self._settings.public_keys)
        self._indicators = Indicators()
        self._change_notifier = ChangeNotifier(self._store)
        is_real = url is not None or time is None or isinstance(time, SystemTime)
        self._registry = Registry(self._store.clock, ends_alone=is_real)
        self._timings = self._make_timings()
        self._closed = False
        self._wire()
        self._snapshot_cache.restore(self._store)
        self._bootstrap.load()
        lifecycle.register(self)
        if self._settings.has_console:
            warn_without_threads()
        self._start()
        self._bootstrap.wait(self._follower.synced, self._timings.bootstrap)

    @classmethod
    def from_env(cls, *, strict: bool = False, **arguments: Any) -> Self:
        """Return a client configured by `SWITCHGEAR_*` variables; `arguments` take precedence.

        Invalid variables do not keep a service from starting. Each problem is logged as an error
        and listed in :meth:`status`; without a usable URL or token the client is offline. With
        `strict`, raise :class:`ValueError` with all problems instead, also if there is no URL.
        """
        from switchgear.environment import client_arguments

        found, problems = client_arguments(arguments, strict=strict)
        client = cls(**found)
        client._problems = (*problems, *client._problems)
        return client

    def allowed(
        self,
        *,
        segment: Key | None = None,
        feature: Key | None = None,
        experiments: Key | Iterable[Key] = (),
        targeting_key: Key | None = None,
    ) -> bool:
        """Return True if this call is allowed. Never raises.

        Does no I/O. Answers that don't change until the next change of switches are cached, and
        read without a lock. A key is a str, an int, a UUID or an enum member; keys are compared by
        their text. A value of any other type is logged as an error, counted in `status().unknown`,
        and blocks nothing. Pass several experiments as a tuple.
        """
        try:
            cached = self._store.cache[segment, feature, experiments]
        except Exception:  # A key may be of any type, whose methods may raise anything.
            return self._store.decide(segment, feature, experiments, targeting_key).allowed
        answer = cached.answer
        if answer is None:
            return self._store.decide(segment, feature, experiments, targeting_key).allowed
        cached.count_call()
        return answer

    def check(
        self,
        *,
        segment: Key | None = None,
        feature: Key | None = None,
        experiments: Key | Iterable[Key] = (),
        targeting_key: Key | None = None,
    ) -> Decision:
        """Like :meth:`allowed`, but return the decision with its switch and reason."""
        try:
            cached = self._store.cache[segment, feature, experiments]
        except Exception:
            return self._store.decide(segment, feature, experiments, targeting_key)
        decision = cached.decision
        if decision is None:
            return self._store.decide(segment, feature, experiments, targeting_key)
        cached.count_call()
        return decision

    def check_allowed(self, query: Query) -> tuple[bool, str | None]:
        """Like :meth:`check`, for a query object.

        The query has a `segment` with a department, an `intent` and `experiments`. The second value
        returned is a message for the user, None if the query is allowed.
        """
        return check_query(query, self.check)

    def guard(
        self,
        *,
        segment: Keys = None,
        feature: Keys = None,
        experiments: Keys = (),
        targeting_key: KeyOf = None,
        unknown: Unknown = "allow",
        on_engage: OnEngage = "finish",
    ) -> Guard:
        """Return a decorator and context manager whose calls begin only while they are allowed.

        Other calls raise :class:`SwitchEngaged`; see :class:`Guard`. `on_engage`: `"finish"` lets
        running calls finish, `"cancel"` cancels coroutines.
        """
        return Guard(
            self._store,
            segment=segment,
            feature=feature,
            experiments=experiments,
            targeting_key=targeting_key,
            unknown=unknown,
            on_engage=on_engage,
            owner=self,
        )

    def policy(self, name: str, **arguments: "Unpack[PolicyArguments]") -> "Policy":
        """Return the policy of `name`, a decorator and context manager of all patterns.

        It includes a guard if keys are given. The console's settings take precedence over the
        `arguments`, at once and without a restart.

        `name` is `caller->callee`, such as `core->oracle`: each 1 to 60 of `a-z`, `0-9` and `-`.
        Any other name works in this process only: it is not reported, the console can't configure
        or override it, and an error is logged. Raise :class:`TypeError` for an argument of the
        wrong type and :class:`ValueError` for an invalid value, before anything is registered.
        """
        from switchgear.policies.arguments import check_policy, split_guard_arguments
        from switchgear.policies.policy import Policy

        guarded, rest = split_guard_arguments(arguments)
        name = check_policy(name, rest)
        guard = self.guard(**guarded) if guarded else None
        dependency = self._registry.get_dependency(name)
        return Policy(name, guard=guard, dependency=dependency, owner=self, **rest)

    def breaker(self, name: str, **arguments: "Unpack[BreakerArguments]") -> "Breaker":
        """Return the circuit breaker that all policies of `name` share.

        The console configures and overrides it as long as this client exists. Raise the errors of
        :meth:`policy`.
        """
        from switchgear.policies.arguments import check_breaker

        name = check_breaker(name, arguments)
        return self._registry.get_dependency(name).get_breaker(**arguments)

    def bulkhead(
        self, name: str, parameters: "BulkheadParameters | Tier | None" = None
    ) -> "Bulkhead":
        """Return the bulkhead that all policies of `name` share; without a limit it admits all."""
        from switchgear.policies.arguments import check_bulkhead

        name = check_bulkhead(name, parameters)
        return self._registry.get_dependency(name).get_bulkhead(parameters)

    def dependencies(self) -> "list[Dependency]":
        """Return the dependencies that are reported to the console.

        These dependencies have a policy, breaker or bulkhead in this client, and a name that the
        console accepts.
        """
        return self._registry.dependencies()

    def on_change(self, callback: "ChangeCallback", *switches: str) -> Callable[[], None]:
        """Call `callback(change)` after each change of `switches`; of any switch if none is named.

        Return a function that unsubscribes it. A plain function runs on a thread of the client, a
        coroutine function as a task of the current event loop. Errors are logged. `global` alone
        means `global:all`; raise :class:`ValueError` for an invalid switch id.
        """
        return self._change_notifier.add(callback, switches)

    def sli(self, name: str) -> SLI:
        """Return the counter of good and total events for the console's SLO of that name."""
        return self._indicators.get(name)

    def wait_ready(self, seconds: float = 5.0) -> bool:
        """Wait until the console has answered; return False if it has not within `seconds`.

        Waiting is optional: until then the last good snapshot applies.
        """
        synced = self._follower.synced
        return synced.wait(seconds) if self._settings.has_console else synced.is_set()

    async def ready(self, seconds: float = 5.0) -> bool:
        """Like :meth:`wait_ready`, in a coroutine."""
        return await async_backend.to_thread(self.wait_ready, seconds)

    def status(self) -> Status:
        """Return the status of this client, for a health page or a log."""
        store, settings, follower = self._store, self._settings, self._follower
        snapshot = store.snapshot
        store.switch_counts()
        return Status(
            service=settings.service,
            instance=settings.instance,
            source=follower.source,
            way=follower.way,
            epoch=None if snapshot is None else snapshot.epoch,
            version=None if snapshot is None else snapshot.version,
            config_version=self._registry.version(settings.service),
            config_error=self._policy_followers.error,
            age_seconds=follower.age_seconds(),
            bootstrap_age_seconds=self._bootstrap.age_seconds(),
            error=follower.error,
            stopped=len(store.view.entries_in_force(store.clock.release_now())),
            orders=store.view.orders.ids,
            forced=tuple(sorted(store.forced)),
            unknown=store.counts.unknown,
            dropped=store.counts.dropped + self._indicators.dropped + self._change_notifier.dropped,
            unreported=self._reporter.unreported,
            problems=(*self._problems, *filter(None, [self._bootstrap.problem])),
            verified=settings.public_keys is not None,
            fallback_error=None if follower.fallback is None else follower.fallback.error,
        )

    def close(self, seconds: float = 2.0) -> None:
        """Send a last report and stop the threads, within `seconds`.

        After that, switches are still evaluated with the last snapshot.
        """
        if self._closed:
            return
        self._closed = True
        lifecycle.unregister(self)
        until = monotonic() + seconds
        self._bootstrap.stop()
        self._workers.stop_following()
        self._reporter.stop(seconds)
        self._follower.join(until - monotonic())
        self._policy_followers.join(until - monotonic())
        self._change_notifier.stop()

    async def aclose(self, seconds: float = 2.0) -> None:
        """Like :meth:`close`, in a coroutine."""
        try:
            await async_backend.to_thread(self.close, seconds)
        except RuntimeError:  # The event loop is ending and starts no threads.
            self.close(seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self.aclose()

    @staticmethod
    def _make_timings() -> "Timings":
        """Return the client's timeouts and intervals; a subclass for tests has shorter ones."""
        from switchgear.console.timings import Timings

        return Timings()

    def _wire(self) -> None:
        from switchgear.console.file_cache import SnapshotCache
        from switchgear.console.reporter import Reporter
        from switchgear.console.snapshot_follower import SnapshotFollower
        from switchgear.policies.policy_follower import PolicyFollowers
        from switchgear.policies.resilience_report import ResilienceReport

        self._snapshot_cache = SnapshotCache(self._settings)
        settings, store, registry = self._settings, self._store, self._registry
        reporting = ResilienceReport(registry, store.clock, settings.service)
        timings = self._timings
        self._reporter = Reporter(settings, store, self._indicators, timings, reporting)
        self._follower = SnapshotFollower(
            settings, store, self._snapshot_cache, self._reporter, timings
        )
        self._policy_followers = PolicyFollowers(
            settings, store.clock, registry, self._reporter.request_report, timings
        )
        registry.on_caller = self._policy_followers.follow
        registry.on_transition = self._reporter.request_report
        self._workers = lifecycle.Workers(
            *(self._reporter, self._follower, self._policy_followers, registry),
            self._change_notifier,
        )

    def _start(self) -> None:
        if self._closed:
            return
        self._bootstrap.start()
        if self._settings.has_console:
            self._reporter.start()
            self._follower.start()
            for caller in self._registry.callers():
                self._policy_followers.follow(caller)

    def _after_fork(self) -> None:
        """Restart in a forked child process as a new instance, unless the client is closed."""
        self._store.after_fork()
        self._bootstrap.after_fork()
        self._indicators.after_fork()
        self._change_notifier.after_fork()
        self._registry.after_fork()
        if not self._closed:
            self._settings = self._settings.for_child()
            self._wire()
            self._start()


from_env = Switchgear.from_env
