"""A request that passes a transport repeatedly: redirected, authenticated, or sent anew."""

import asyncio

import httpx
import pytest

from switchgear.adapters.httpx import AsyncTransport, Patterns, Transport
from switchgear.patterns.deadline import Deadline
from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.retry import Retry
from tests.wire.http_server import Asked, Said, in_turn, serving

QUICK = RetryParameters(attempts=3, base_seconds=0.0)
LONG = 20.0
CHALLENGE = {"WWW-Authenticate": 'Digest realm="a", nonce="b", qop="auth", algorithm=MD5'}


def client_of(**parts):
    transport = Transport(Patterns(**parts), httpx.HTTPTransport(verify=False))
    return httpx.Client(transport=transport, follow_redirects=True)


def ask(method, url, *, parts, **request):
    with client_of(**parts) as client:
        return client.request(method, url, **request)


def aask(method, url, *, parts, **request):
    async def main():
        transport = AsyncTransport(Patterns(**parts), httpx.AsyncHTTPTransport(verify=False))
        async with httpx.AsyncClient(transport=transport, follow_redirects=True) as client:
            return await client.request(method, url, **request)

    return asyncio.run(main())


both = pytest.mark.parametrize("ask_it", [ask, aask])


def by_path(asked: Asked) -> Said:
    """A redirection to `/end`, a place that wants credentials, and one that is always busy."""
    if asked.path == "/redirected":
        return Said(307, {"Location": "/end"})
    if asked.path == "/locked" and "authorization" not in asked.headers:
        return Said(401, CHALLENGE)
    return Said(503)


def keys_of(server):
    return [each.headers["idempotency-key"] for each in server.asked]


@both
def test_a_post_without_a_key_is_not_repeated_where_it_is_redirected_to(ask_it):
    with serving(by_path) as server:
        ask_it("POST", server.url + "/redirected", content=b"a", parts={"retry": Retry("b", QUICK)})

    assert [each.path for each in server.asked] == ["/redirected", "/end"]
    assert len(set(keys_of(server))) == 1


@both
def test_a_post_without_a_key_is_not_repeated_once_it_has_credentials(ask_it):
    auth, parts = httpx.DigestAuth("ann", "secret"), {"retry": Retry("b", QUICK)}
    with serving(by_path) as server:
        ask_it("POST", server.url + "/locked", content=b"a", auth=auth, parts=parts)

    assert ["authorization" in each.headers for each in server.asked] == [False, True]
    assert len(set(keys_of(server))) == 1


@both
def test_a_key_of_the_callers_is_good_for_repeating_where_it_is_redirected_to(ask_it):
    headers, parts = {"Idempotency-Key": "order-17"}, {"retry": Retry("b", QUICK)}
    with serving(by_path) as server:
        ask_it("POST", server.url + "/redirected", content=b"a", headers=headers, parts=parts)

    assert [each.path for each in server.asked] == ["/redirected", "/end", "/end", "/end"]
    assert set(keys_of(server)) == {"order-17"}


def test_a_request_that_the_caller_sends_anew_goes_once_each_time_with_its_key():
    with serving(in_turn(Said(503))) as server, client_of(retry=Retry("b", QUICK)) as client:
        request = client.build_request("POST", server.url, content=b"a")
        client.send(request)
        client.send(request)

    assert len(server.asked) == 2
    assert len(set(keys_of(server))) == 1
    assert "idempotency-key" not in request.headers


def test_another_request_with_the_same_extensions_has_a_key_of_its_own():
    with serving(in_turn(Said())) as server, client_of() as client:
        first = client.build_request("POST", server.url, content=b"a")
        client.send(first)
        client.post(server.url, content=b"a", extensions=first.extensions)

    assert len(set(keys_of(server))) == 2


def test_each_pass_of_a_redirected_request_has_the_time_of_its_own_route():
    routes = {"/quick": 3.0, "/slow": LONG}
    with (
        serving(in_turn(Said(302, {"Location": "/slow"}), Said())) as server,
        client_of(routes=routes) as client,
    ):
        answer = client.get(server.url + "/quick")

    given = [int(each.headers["x-request-timeout-ms"]) for each in server.asked]
    assert given[0] <= 3000 < given[1]
    assert answer.request.extensions["timeout"] == httpx.Timeout(5.0).as_dict()


def test_what_held_for_one_sending_does_not_hold_for_the_next():
    with serving(in_turn(Said(503), Said())) as server:
        with client_of(retry=Retry("b", QUICK)) as client, Deadline(LONG):
            request = client.build_request("GET", server.url)
            client.send(request)
        with client_of() as client:
            client.send(request)

    names = {"x-request-timeout-ms", "x-retry-attempt"}
    assert [names & set(each.headers) for each in server.asked] == [names, names, set()]


def test_the_transport_of_the_client_sees_a_body_that_has_been_read():
    seen = []

    class Inner(httpx.BaseTransport):
        def handle_request(self, request):
            seen.append(request.content)
            return httpx.Response(200)

    with httpx.Client(transport=Transport(Patterns(), Inner())) as client:
        client.post("http://backend/", content=b"a")
    assert seen == [b"a"]
