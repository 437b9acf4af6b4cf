"""A client that follows a console."""

import contextlib
from collections.abc import Iterator
from typing import Any

from switchgear import Switchgear
from tests.consoles import TOKEN, Console
from tests.quick import QuickClient
from tests.telling.waiting import until

NAME = "core->oracle"


@contextlib.contextmanager
def following(there: Console, **given: Any) -> Iterator[Switchgear]:
    """Closed in the end."""
    made = QuickClient(there.url, TOKEN, **{"service": "core", "state_dir": None, **given})
    try:
        yield made
    finally:
        made.close()


def heard(gear: Switchgear, version: int) -> None:
    """Wait until those policies are in force."""
    until(lambda: gear.status().config_version == version)
