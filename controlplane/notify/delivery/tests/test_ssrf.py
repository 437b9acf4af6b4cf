"""The egress guard: no spelling of a URL and no DNS answer leads to an internal address."""

import asyncio
import functools
import ipaddress
import threading

import httpx
import pytest

from controlplane.core.egress_guard import guard, name_resolution
from controlplane.core.egress_guard.allowed_networks import WEBHOOKS, UrlRefused, is_public
from controlplane.core.egress_guard.name_resolution import Unresolved
from controlplane.notify.transports.failures import PermanentFailure, TransientFailure
from controlplane.notify.transports.outbound import post

from .fake_receiver import fake_receiver, trusting

PUBLIC = "93.184.215.14"
GuardedTransport = functools.partial(guard.GuardedTransport, WEBHOOKS)
check_url = functools.partial(guard.check_url, allowance=WEBHOOKS)


class Resolver:
    """A resolver that returns its answers in turn, and repeats the last one."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def __call__(self, host, port):
        self.asked.append((host, port))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if not answer:
            raise OSError("no such name")
        return answer


@pytest.fixture(autouse=True)
def _nothing_of_ours_is_allowed(settings):
    settings.WEBHOOK_ALLOW = ()


@pytest.fixture
def inside():
    with fake_receiver() as fake:
        yield fake


def call(url, resolver=name_resolution.resolve, trust=None):
    return post(url, b"{}", {}, transport=GuardedTransport(resolver=resolver, trust=trust))


PRIVATE = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.8.8.8",
    "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1",
    "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1",
    "239.255.255.250", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", f"::ffff:{PUBLIC}",
    "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1",
    "2001:10::1", "2002:7f00:1::", "2002:a00:1::1", "3fff::1", "5f00::1", "fc00::1",
    "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "4000::1",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_public_is_refused_written_out_and_behind_a_name(address):
    literal = f"[{address}]" if ":" in address else address

    with pytest.raises(ValueError, match="not on the public internet"):
        check_url(f"https://{literal}/hook")
    with pytest.raises(ValueError, match="not on the public internet"):
        check_url("https://hooks.example.org/", resolver=Resolver([address]))
    with pytest.raises(PermanentFailure):
        call("https://hooks.example.org/", Resolver([address]))


@pytest.mark.parametrize(
    "address", [PUBLIC, "1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111"]
)
def test_a_public_address_is_fine(address):
    assert is_public(ipaddress.ip_address(address))
    check_url("https://hooks.example.org/a?b=c", resolver=Resolver([address]))


@pytest.mark.parametrize(
    "host",
    [
        "2130706433", "0x7f000001", "0x7f.1", "017700000001", "0177.0.0.1", "127.1", "127.0.1",
        "0", "127.0.0.1.", "127.000.000.001", "0x7f.0x0.0x0.0x1", "①②⑦.⓪.⓪.①", "127。0。0。1",
        "１２７.0.0.1", "[::1%25lo]", "[fe80::1%25eth0]", "[fe80::1%eth0]", "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]", "127.0.0.1%00.example.org", "127.0.0.1%2eexample.org",
        "localhost", "LOCALHOST", "ⓛocalhost",
    ],
)  # fmt: skip
def test_no_notation_of_a_private_address_gets_through(host, inside):
    url = f"https://{host}:{inside.port}/"

    with pytest.raises(ValueError, match=r"\."):
        check_url(url)
    with pytest.raises(PermanentFailure):
        call(url)
    assert inside.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "", "hooks.example.org", "//hooks.example.org/", "https://", "https:///x", "https:/x",
        "ftp://hooks.example.org/", "file:///etc/passwd", "gopher://hooks.example.org/",
        "javascript:alert(1)", "http://hooks.example.org/", "https://user@hooks.example.org/",
        "https://user:pw@hooks.example.org/", "https://:@hooks.example.org/",
        "https://hooks.example.org\\@127.0.0.1/", "https://hooks.example.org:0x50/",
        "https://hooks.example.org:99999/", "https://hooks.example.org/a b",
        "https://hooks.example.org/\r\nX-Evil: 1", "https://hooks.example.org/\x00",
        "https://hooks.exam\tple.org/", f"https://hooks.example.org/{'x' * 500}", " https://x.org/",
    ],
)  # fmt: skip
def test_a_url_that_is_odd_is_refused_with_a_sentence(url):
    with pytest.raises(ValueError, match=r"^[A-Z].*\.$"):
        check_url(url, resolver=Resolver([PUBLIC]))


def test_one_private_address_among_public_ones_is_enough_to_refuse():
    with pytest.raises(ValueError, match="not on the public internet"):
        check_url("https://hooks.example.org/", resolver=Resolver([PUBLIC, "10.0.0.1"]))


def test_a_name_that_is_not_known_now_can_be_saved_but_not_called():
    check_url("https://hooks.example.org/", resolver=Resolver([]))

    with pytest.raises(TransientFailure, match=r"hooks\.example\.org"):
        call("https://hooks.example.org/", Resolver([]))


def test_a_resolver_that_hangs_is_given_up(inside):
    never = threading.Event()
    with pytest.raises(Unresolved, match="could not be resolved within"):
        name_resolution.look_up(
            "hooks.example.org", 443, resolver=lambda *_: never.wait(30), seconds=0.1
        )
    never.set()


def test_a_name_that_changes_after_the_check_changes_nothing(inside, settings):
    """DNS rebinding: the second answer is an internal address, but is never requested."""
    settings.WEBHOOK_ALLOW = ("127.0.0.1/32",)
    with fake_receiver() as checked:
        resolver = Resolver(["127.0.0.1"], ["10.0.0.1"])

        answer = call(f"http://hooks.example.org:{checked.port}/x", resolver)

        assert answer.status == 200
        assert resolver.asked == [("hooks.example.org", checked.port)]
        (request,) = checked.requests
        assert request["headers"]["host"] == f"hooks.example.org:{checked.port}"


def test_what_was_fine_when_saved_is_refused_when_called_if_it_moved_inside(inside):
    resolver = Resolver([PUBLIC], ["127.0.0.1"])
    url = f"https://hooks.example.org:{inside.port}/"
    check_url(url, resolver=resolver)

    with pytest.raises(PermanentFailure, match="not on the public internet"):
        call(url, resolver)

    assert inside.requests == []


def test_tls_asks_for_the_name_and_checks_it(settings):
    settings.WEBHOOK_ALLOW = ("127.0.0.0/8",)
    with fake_receiver(tls=True) as receiver:
        own = f"https://hooks.example.org:{receiver.port}/x"
        other = f"https://elsewhere.example.org:{receiver.port}/x"

        assert call(own, Resolver(["127.0.0.1"]), trusting()).status == 200
        with pytest.raises(TransientFailure, match="connection failed"):
            call(other, Resolver(["127.0.0.1"]), trusting())
        with pytest.raises(TransientFailure, match="connection failed"):
            call(own, Resolver(["127.0.0.1"]))

        assert receiver.server_names[0] == "hooks.example.org"
        assert receiver.requests[0]["headers"]["host"] == f"hooks.example.org:{receiver.port}"
        assert len(receiver.requests) == 1


def test_an_address_that_does_not_answer_is_followed_by_the_next(settings):
    settings.WEBHOOK_ALLOW = ("127.0.0.0/8",)
    with fake_receiver() as receiver:  # Listens on 127.0.0.1 alone.
        url = f"http://hooks.example.org:{receiver.port}/x"

        assert call(url, Resolver(["127.0.0.2", "127.0.0.1"])).status == 200
        assert len(receiver.requests) == 1


def test_an_operators_own_network_may_be_called_also_without_tls(inside, settings):
    settings.WEBHOOK_ALLOW = ("127.0.0.0/8", "10.20.0.0/16")
    check_url(f"http://127.0.0.1:{inside.port}/")
    check_url("http://[::ffff:10.20.0.9]/")

    assert call(f"http://127.0.0.1:{inside.port}/").status == 200
    with pytest.raises(ValueError, match="https"):
        check_url("http://hooks.example.org/", resolver=Resolver([PUBLIC]))
    with pytest.raises(ValueError, match="not on the public internet"):
        check_url("https://10.21.0.1/")


@pytest.mark.parametrize("name", ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"])
def test_a_proxy_of_the_environment_is_not_used(inside, settings, monkeypatch, name):
    settings.WEBHOOK_ALLOW = ("127.0.0.1/32",)
    with fake_receiver() as proxy:
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")

        assert call(f"http://127.0.0.1:{inside.port}/").status == 200
        assert proxy.requests == []


def test_the_url_of_a_redirect_is_not_called(inside, settings):
    inside.script = ["302 Location http://169.254.169.254/latest/meta-data/"]
    settings.WEBHOOK_ALLOW = ("127.0.0.1/32",)

    assert call(f"http://127.0.0.1:{inside.port}/").status == 302
    assert len(inside.requests) == 1


def test_the_guard_stands_in_the_transport_itself():
    """The guard also applies to requests built by another client."""
    with (
        httpx.Client(transport=_Sync(GuardedTransport())) as client,
        pytest.raises(UrlRefused),
    ):
        client.get("https://169.254.169.254/latest/")


class _Sync(httpx.BaseTransport):
    def __init__(self, transport):
        self.transport = transport

    def handle_request(self, request):
        return asyncio.run(self.transport.handle_async_request(request))
