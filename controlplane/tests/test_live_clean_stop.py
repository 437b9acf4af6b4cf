"""Clients of a real web process stop cleanly."""

from collections.abc import Callable, Iterator

import pytest

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person, token_text
from controlplane.core.instances.models import Instance
from controlplane.tests.console_sockets import Console
from controlplane.tests.installation import wait_until
from switches.effect import SwitchEffect, measure_effect
from switches.models import Switch
from switches.tests.browsers import engaged
from switchgear import Switchgear

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]


@pytest.fixture
def start(console: Console, transactional_db: None) -> Iterator[Callable[[str], Switchgear]]:
    """A function that starts an instance of core and waits until the console knows it."""
    token = token_text(person("admin", "core"), ["switches:read", "report:write"])
    clients = []

    def start(name: str) -> Switchgear:
        client = Switchgear(
            console.server.url, token, service="core", instance=name, state_dir=None
        )
        clients.append(client)
        wait_until(lambda: Instance.objects.filter(id=f"core/{name}").exists(), 30)
        return client

    yield start
    for client in clients:
        client.close()


def measure_only_switch() -> SwitchEffect:
    effect = measure_effect(Switch.objects.get(), db_now())
    assert effect is not None
    return effect


@pytest.mark.slow
def test_proof_is_complete_during_a_rolling_deploy(start: Callable[[str], Switchgear]) -> None:
    former = [start(name) for name in ("a1", "a2", "a3")]
    former[0].close()
    start("a4")

    engaged("segment:finance")
    wait_until(lambda: measure_only_switch().whole, 10)
    assert measure_only_switch().heading == "Applied by all 3 reporting instances"

    start("a1")
    wait_until(lambda: measure_only_switch().instances == 4, 10)
    wait_until(lambda: measure_only_switch().whole, 10)
