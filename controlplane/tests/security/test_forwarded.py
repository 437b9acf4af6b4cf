"""Client addresses from forwarding headers, with and without trusted proxies."""

import pytest
from django.test import Client, RequestFactory

from controlplane.core.audit.models import AuditEntry
from controlplane.core.http import requests
from controlplane.core.http.tests.callers import person

PROXIES = ("10.0.0.0/8", "fd00::/8")


def came(peer, forwarded=None):
    headers = {} if forwarded is None else {"x-forwarded-for": forwarded}
    return requests.client_ip(RequestFactory().get("/", REMOTE_ADDR=peer, headers=headers))


@pytest.mark.parametrize("forwarded", ["1.2.3.4", "1.2.3.4, 5.6.7.8", "10.0.0.1", "", "x"])
def test_without_proxies_no_header_counts(settings, forwarded):
    settings.TRUSTED_PROXIES = ()

    assert came("10.0.0.9", forwarded) == "10.0.0.9"


@pytest.mark.parametrize("forwarded", ["1.2.3.4", "8.8.8.8, 10.0.0.1", "::1"])
def test_whoever_is_no_proxy_of_ours_is_not_believed(settings, forwarded):
    settings.TRUSTED_PROXIES = PROXIES

    assert came("203.0.113.7", forwarded) == "203.0.113.7"


@pytest.mark.parametrize(
    ("forwarded", "expected"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("1.2.3.4, 203.0.113.7", "203.0.113.7"),  # The first is what the caller wrote himself.
        ("203.0.113.7, 10.1.1.1, 10.2.2.2", "203.0.113.7"),
        ("1.2.3.4, 10.9.9.9, 203.0.113.7, 10.1.1.1", "203.0.113.7"),
        ("2001:db8::5", "2001:db8::5"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("203.0.113.7, nonsense", "10.0.0.9"),
        ("203.0.113.7:443", "10.0.0.9"),
        ("fe80::1%" + "x" * 500, "10.0.0.9"),
        ("'; DROP TABLE core_user --", "10.0.0.9"),
        ("10.3.3.3", "10.3.3.3"),  # Everybody on the way is ours: the first of them.
        ("", "10.0.0.9"),
        (None, "10.0.0.9"),
        (", " * 100_000 + "203.0.113.7", "203.0.113.7"),
        (", ".join(["203.0.113.7", *["10.0.0.1"] * 100]), "10.0.0.1"),
    ],
)
def test_a_proxy_of_ours_says_who_came_to_it(settings, forwarded, expected):
    settings.TRUSTED_PROXIES = PROXIES

    assert came("10.0.0.9", forwarded) == expected


def test_a_proxy_heard_over_ipv6_sockets_is_known_too(settings):
    settings.TRUSTED_PROXIES = PROXIES

    assert came("::ffff:10.0.0.9", "203.0.113.7") == "203.0.113.7"


@pytest.mark.django_db
@pytest.mark.parametrize(("peer", "noted"), [("10.0.0.9", "203.0.113.7"), ("7.7.7.7", "7.7.7.7")])
def test_the_trail_notes_who_came(settings, peer, noted):
    settings.TRUSTED_PROXIES = PROXIES
    person("operator", "kim").save()

    Client(REMOTE_ADDR=peer, headers={"x-forwarded-for": "6.6.6.6, 203.0.113.7"}).post(
        "/sign-in/", {"username": "kim", "password": "wrong"}
    )

    assert AuditEntry.objects.get(action="session.failed").ip == noted


@pytest.mark.django_db
def test_another_forwarded_address_is_no_way_round_the_limit_on_guesses(settings):
    settings.TRUSTED_PROXIES = ()
    person("operator", "kim")
    answers = [
        Client(headers={"x-forwarded-for": f"8.8.4.{number}"}).post(
            "/sign-in/", {"username": "kim", "password": "wrong"}
        )
        for number in range(settings.AXES_FAILURE_LIMIT + 1)
    ]

    assert answers[-1].status_code == 429


@pytest.mark.django_db
def test_behind_a_proxy_each_visitor_has_guesses_of_their_own(settings):
    """Else one attacker locks everybody out of an account."""
    settings.TRUSTED_PROXIES = PROXIES
    user = person("operator", "kim")
    user.set_password("right")
    user.save()

    def guess(password, address):
        client = Client(REMOTE_ADDR="10.0.0.9", headers={"x-forwarded-for": address})
        return client.post("/sign-in/", {"username": "kim", "password": password}).status_code

    for _ in range(settings.AXES_FAILURE_LIMIT + 1):
        last = guess("wrong", "203.0.113.7")

    assert last == 429
    assert guess("right", "198.51.100.4") == 302


@pytest.mark.parametrize(("peer", "believed"), [("10.0.0.9", True), ("203.0.113.7", False)])
def test_only_a_proxy_may_say_that_a_request_was_encrypted(settings, peer, believed):
    settings.TRUSTED_PROXIES = PROXIES
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    request = RequestFactory().get("/", REMOTE_ADDR=peer, headers={"x-forwarded-proto": "https"})

    requests.set_request_id(request)

    assert request.is_secure() is believed


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["x-forwarded-host", "forwarded", "x-original-url", "x-host"])
def test_no_other_header_moves_a_request(name):
    response = Client(headers={name: "evil.example"}).get("/")

    assert response.headers["Location"] == "/sign-in/?next=/"


@pytest.mark.django_db
def test_a_host_that_is_not_ours_is_refused(settings):
    settings.ALLOWED_HOSTS = ["switchgear.example"]

    response = Client(headers={"host": "evil.example"}).get("/sign-in/")

    assert response.status_code == 400
    assert "evil" not in response.content.decode()
