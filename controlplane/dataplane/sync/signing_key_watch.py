"""Background task that reads the signing keys, and notices new keys and the end of old ones."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import structlog

from controlplane.core.degradation_levels import DEGRADED, Cause
from controlplane.core.private_files import InvalidFile
from controlplane.core.signing_keys import KeyRing, SigningKeyFile
from controlplane.dataplane.config import Config
from controlplane.dataplane.state import State

LOOK_SECONDS = 2.0

log = structlog.get_logger(__name__)

_utc_now = partial(datetime.now, UTC)


class SigningKeyWatch:
    """Installs the signing keys of `config` in the state, and follows those of a file.

    Keys that were read are used on while the file can't be read.
    """

    def __init__(
        self, config: Config, state: State, clock: Callable[[], datetime] = _utc_now
    ) -> None:
        self._file = config.signing_key_file if config.signing_keys is None else None
        self._state = state
        self._clock = clock
        self._ring = config.signing_keys
        self._identity: tuple[int, ...] | None = None
        self._installed: KeyRing | None = None
        if self._file is not None and config.data_planes:
            log.warning("signing_keys.not_shared", set="SNAPSHOT_SIGNING_KEY")

    async def run(self) -> None:
        while self._file is not None:
            await self.refresh()
            await asyncio.sleep(LOOK_SECONDS)

    async def refresh(self) -> None:
        """Read the file if it has changed, and install the keys that sign now."""
        if self._file is not None:
            try:
                await asyncio.to_thread(self._read, self._file)
            except (InvalidFile, OSError) as error:
                self._report(str(error))
            else:
                self._state.signing = None
        valid = None if self._ring is None else self._ring.valid_at(self._clock())
        if valid is not None and valid != self._installed:
            self._installed = valid
            self._state.install_keys(valid.signing_keys, valid.public_documents())
            log.info("signing_keys.installed", ids=[key.public.id for key in valid.signing_keys])

    def _read(self, file: SigningKeyFile) -> None:
        if self._ring is None:
            # A file that is lost later is not replaced: clients trust the keys that are in use.
            self._ring = file.read_or_create()
        identity = file.identity()
        if identity != self._identity:
            self._ring, self._identity = file.read(), identity

    def _report(self, problem: str) -> None:
        if self._state.signing is None:
            log.error("signing_keys.unreadable", error=problem)
        self._state.signing = _describe_problem(problem, is_signed=self._ring is not None)


def _describe_problem(problem: str, *, is_signed: bool) -> Cause:
    effect = (
        "Snapshots are signed with the keys that were read before."
        if is_signed
        else "Snapshots are not signed, so clients that verify them keep what they have."
    )
    return Cause(
        DEGRADED,
        "signing keys",
        f"The keys that sign snapshots can't be read: {problem}. {effect}",
        fails=("A new key by manage.py keys rotate",) if is_signed else ("Signed snapshots",),
        works=("Snapshots, streams and checks",),
    )
