"""What the console is told: which version is applied here, what was asked for, how SLIs stand."""

from switchgear.deciding.memory import Memory
from switchgear.settings import Settings
from switchgear.sli import Indicators


class Courier:
    def __init__(self, settings: Settings, memory: Memory, indicators: Indicators) -> None:
        self.unreported = 0

    def start(self) -> None: ...

    def applied(self) -> None:
        """The follower has put a version in force that came by the stream."""

    def stop(self, seconds: float) -> None: ...
