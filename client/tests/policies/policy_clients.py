"""A client that follows a console."""

import contextlib
from collections.abc import Iterator
from typing import Any

from switchgear import Switchgear
from tests.fake_console import TOKEN, Console
from tests.quick_client import QuickClient
from tests.wait_helpers import wait_until

NAME = "core->oracle"


@contextlib.contextmanager
def following(there: Console, **given: Any) -> Iterator[Switchgear]:
    """Run a client during the block."""
    made = QuickClient(there.url, TOKEN, **{"service": "core", "state_dir": None, **given})
    try:
        yield made
    finally:
        made.close()


def wait_for_version(gear: Switchgear, version: int) -> None:
    """Wait until that version of the policies is in force."""
    wait_until(lambda: gear.status().config_version == version)
