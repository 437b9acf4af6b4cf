"""PagerDuty and Opsgenie alike: regions, and the classification of responses."""

import httpx
import pytest

from controlplane.notify.delivery.tests.messages import message
from controlplane.notify.transports.failures import PermanentFailure, TransientFailure
from controlplane.notify.transports.opsgenie import transport as opsgenie
from controlplane.notify.transports.pagerduty import transport as pagerduty

from .fake_on_call_service import create_channel, on_call_service

__all__ = ["on_call_service"]

pytestmark = pytest.mark.django_db
SERVICES = {"pagerduty": pagerduty, "opsgenie": opsgenie}
REFUSALS = {
    "pagerduty": ("400", "401", "403", "404", "413", "422"),
    "opsgenie": ("400", "401", "403", "404", "422"),
}


@pytest.mark.parametrize(
    ("name", "region", "host"),
    [
        ("pagerduty", "us", "events.pagerduty.com"),
        ("pagerduty", "eu", "events.eu.pagerduty.com"),
        ("opsgenie", "us", "api.opsgenie.com"),
        ("opsgenie", "eu", "api.eu.opsgenie.com"),
    ],
)
def test_region_chooses_the_address(settings, name, region, host):
    setattr(settings, f"{name.upper()}_API_URL", "")
    service, hosts = SERVICES[name], []

    class Recording(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request):
            hosts.append(request.url.host)
            return httpx.Response(202)

    service.send(message(create_channel(service, region=region)), transport=Recording())

    assert hosts == [host]


@pytest.mark.parametrize(
    ("name", "status"), [(name, status) for name in SERVICES for status in REFUSALS[name]]
)
def test_refusal_is_final(on_call_service, name, status):
    on_call_service.script = [status]

    with pytest.raises(PermanentFailure, match=status):
        SERVICES[name].send(message(create_channel(SERVICES[name])))


@pytest.mark.parametrize("status", ["429", "500", "502", "503"])
@pytest.mark.parametrize("name", SERVICES)
def test_transient_failure_is_retried_when_the_service_says(on_call_service, name, status):
    on_call_service.script = [f"{status} Retry-After 90"]

    with pytest.raises(TransientFailure, match=status) as caught:
        SERVICES[name].send(message(create_channel(SERVICES[name])))

    assert caught.value.retry_after_seconds == 90
