"""A client of the model: the real store of the client library, polling one process or another."""

from collections.abc import Callable, Iterable

from controlplane.dataplane.memory.served_copy import Copy, match_copy, parse_tags
from switchgear.clock import ConsoleClock
from switchgear.console.signatures import make_parser
from switchgear.evaluation.snapshot import Snapshot
from switchgear.evaluation.snapshot_store import SnapshotStore


class ModelTime:
    """The time of the model, for :class:`ConsoleClock`."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self.monotonic = self.wall = seconds

    def wait(self, seconds: float) -> None:
        raise AssertionError("nothing waits in the model")


class Client:
    """A service that polls any plane, as behind a load balancer.

    With `public_keys` it verifies signatures.
    """

    def __init__(
        self, seconds: Callable[[], float], public_keys: Iterable[str] | None = None
    ) -> None:
        clock = ConsoleClock(ModelTime(seconds))
        clock.trust_local()
        self._store = SnapshotStore(clock)
        self._parse = make_parser(public_keys)
        self._etag: tuple[bytes, Snapshot | None] = b"", None

    def poll(self, copy: Copy) -> None:
        if match_copy(parse_tags(self._tags()), copy):
            return  # 304
        snapshot = self._parse(copy.body, copy.signature, {})
        self._store.accept(snapshot)
        in_force = self._store.snapshot
        if in_force is not None and snapshot.mark == in_force.mark:
            self._etag = copy.etag, in_force

    def has_applied(self, order_id: str) -> bool:
        return order_id in self._store.view.orders.kept

    def is_engaged(self, switch: str) -> bool:
        entry = self._store.view.entries.get(switch)
        return entry is not None and entry.state == "engaged"

    def _tags(self) -> bytes:
        etag, of_snapshot = self._etag
        if self._store.snapshot is not of_snapshot:
            return b""
        mark = (self._store.view.mark or "").encode()
        is_merged = self._store.view.orders.hash and mark not in etag
        return etag + b', "%b"' % mark if is_merged else etag
