"""Django's responses are compressed for callers that accept gzip, except those with a secret."""

import gzip

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from django.test import RequestFactory

from controlplane.core.http.compression import MAX_RANDOM_BYTES, CompressionMiddleware
from controlplane.core.http.tests.callers import with_token

TEXT = b"<p>segment:finance is engaged</p>" * 100


def answered(response, *, method="GET", path="/switches/", accepted="gzip, br"):
    request = RequestFactory().generic(method, path, headers={"Accept-Encoding": accepted})
    return CompressionMiddleware(lambda _: response)(request)


def test_a_page_is_compressed_and_reads_back():
    answer = answered(HttpResponse(TEXT, headers={"ETag": '"17"'}))

    assert answer["Content-Encoding"] == "gzip"
    assert gzip.decompress(answer.content) == TEXT
    assert answer["Content-Length"] == str(len(answer.content))
    assert answer["ETag"] == '"17-gzip"'
    assert answer["Vary"] == "Accept-Encoding"


def test_its_length_is_blurred():
    lengths = {len(answered(HttpResponse(TEXT)).content) for _ in range(50)}

    assert 5 < len(lengths) <= MAX_RANDOM_BYTES


@pytest.mark.parametrize("accepted", ["", "br", "gzip;q=0", "identity"])
def test_who_does_not_accept_it_gets_the_page_as_it_is(accepted):
    answer = answered(HttpResponse(TEXT), accepted=accepted)

    assert answer.content == TEXT
    assert "Content-Encoding" not in answer
    assert answer["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    ("response", "more"),
    [
        (HttpResponse(TEXT), {"method": "POST"}),
        (HttpResponse(TEXT), {"path": "/preferences/security/app/"}),
        (HttpResponse(TEXT), {"path": "/sign-in/"}),
        (HttpResponse(TEXT[:500]), {}),
        (HttpResponse(TEXT, status=404), {}),
        (HttpResponse(TEXT, content_type="image/png"), {}),
        (HttpResponse(TEXT, headers={"Content-Encoding": "br"}), {}),
    ],
)
def test_the_rest_is_left_alone(response, more):
    answer = answered(response, **more)

    assert answer.content in (TEXT, TEXT[:500])
    assert answer.get("Content-Encoding") in (None, "br")


def test_a_stream_is_left_alone():
    answer = answered(StreamingHttpResponse(iter([TEXT])))

    assert "Content-Encoding" not in answer
    assert b"".join(answer.streaming_content) == TEXT


@pytest.mark.django_db
def test_the_api_compresses_its_lists():
    api = with_token("breakers:read")
    headers = {**api.headers, "Accept-Encoding": "gzip"}

    answer = api.client.get("/api/schema/", headers=headers)

    assert answer["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in answer["Vary"]
