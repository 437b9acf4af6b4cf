"""A clock that stands still until a test advances it."""


class Clock:
    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self.reads = 0

    def __call__(self) -> float:
        self.reads += 1
        return self.now

    def goes(self, seconds: float) -> None:
        self.now += seconds
