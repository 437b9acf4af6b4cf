"""A switch and its episode are read at one moment, with matching state and version."""

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest
from django.db import connection

from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from switches import services, topics
from switches.api import switches

pytestmark = pytest.mark.django_db(transaction=True)
REASON = "provider outage, 5xx on completions since 02:10"
SWITCH = "feature:chat"


class ChangeAfterFirstRead:
    """Commits a change on another connection as soon as a switch row was read."""

    def __init__(self, change: Callable[[], object]) -> None:
        self._change: Callable[[], object] | None = change

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if self._change is not None and 'FROM "switches_switch"' in sql:
            change, self._change = self._change, None
            thread = Thread(target=_in_thread, args=[change])
            thread.start()
            thread.join()
        return result


def _in_thread(change: Callable[[], object]) -> None:
    try:
        change()
    finally:
        connection.close()


def engage() -> None:
    services.engage(
        scope="feature",
        key="chat",
        reason=REASON,
        expires_in="1h",
        actor=system_actor("test"),
        now=db_now(),
    )


def release() -> None:
    services.release(
        scope="feature",
        key="chat",
        justification=REASON,
        mode="immediate",
        actor=system_actor("test"),
        now=db_now(),
    )


@pytest.mark.parametrize(
    "read",
    [
        lambda: topics.read_switches([SWITCH], db_now())[SWITCH],
        lambda: switches.read_switch_resource("feature", "chat"),
    ],
    ids=["live topic", "api"],
)
@pytest.mark.parametrize(
    ("before", "change", "state"),
    [((engage,), release, "engaged"), ((engage, release), engage, "released")],
    ids=["released meanwhile", "engaged meanwhile"],
)
def test_change_committed_during_a_read_does_not_mix_with_it(
    read: Callable[[], dict[str, Any]],
    before: tuple[Callable[[], None], ...],
    change: Callable[[], None],
    state: str,
) -> None:
    for each in before:
        each()
    version = read()["version"]

    with connection.execute_wrapper(ChangeAfterFirstRead(change)):
        rows = read()

    assert (rows["state"], rows["version"]) == (state, version)
    assert read()["version"] == version + 1
