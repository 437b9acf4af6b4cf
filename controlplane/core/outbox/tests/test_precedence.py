"""What is critical goes out before what is not, but never before what it belongs behind."""

import pytest

from controlplane.core.outbox import claims
from controlplane.core.outbox.tests.sending import announce

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _somewhere(by_bot):
    """There is a Slack to send to."""


def test_critical_message_passes_by_many_lines_of_threads():
    announce(5, event="ramp.advanced")
    announce(first=6, event="switch.engaged")

    first, second = claims.claim("slack"), claims.claim("slack")

    assert first.message.event == "switch.engaged"
    assert (second.message.event, second.message.event_key) == ("ramp.advanced", "audit:1")


def test_critical_message_waits_for_an_earlier_one_about_the_same():
    announce(event="ramp.advanced", subject="episode:1")
    announce(first=2, event="ramp.compensated", subject="episode:1")

    assert claims.claim("slack").message.event == "ramp.advanced"
    assert claims.claim("slack") is None
