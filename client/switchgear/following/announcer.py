"""Tells callbacks which switches have changed."""

from collections.abc import Callable, Iterable
from typing import Any

from switchgear.deciding.memory import Memory

Callback = Callable[[Any], Any]


class Announcer:
    def __init__(self, memory: Memory) -> None: ...

    def add(self, callback: Callback, switches: Iterable[str]) -> Callable[[], None]:
        return lambda: None

    def stop(self) -> None: ...

    def after_fork(self) -> None: ...
