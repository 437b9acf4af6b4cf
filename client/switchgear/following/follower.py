"""Follows the console: by its stream, else by held polls, else by plain ones."""

import threading

from switchgear.deciding.memory import Memory
from switchgear.following.courier import Courier
from switchgear.following.disk import Disk
from switchgear.settings import Settings
from switchgear.status import Source, Way


class Follower:
    def __init__(self, settings: Settings, memory: Memory, disk: Disk, courier: Courier) -> None:
        self.heard = threading.Event()
        """Set once the console has said what is engaged."""
        self.source: Source = "none"
        self.way: Way = "offline" if settings.url is None else "starting"
        self.error: str | None = None

    def age_seconds(self) -> float | None:
        """Since the console last confirmed the snapshot in force; None if it never did here."""
        return None

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def join(self, seconds: float) -> None: ...
