"""The last good snapshot on disk: what is known at a start without the console."""

from switchgear.deciding.memory import Memory
from switchgear.settings import Settings


class Disk:
    def __init__(self, settings: Settings) -> None: ...

    def restore(self, memory: Memory) -> None: ...

    def keep(self, memory: Memory) -> None: ...
