"""Negotiation of gzip by `Accept-Encoding`."""

import gzip

import pytest

from controlplane.core.content_encoding import accepts_gzip, compress_gzip, gzip_etag


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        (b"gzip", True),
        (b"GZIP", True),
        (b"x-gzip", True),
        (b"gzip, deflate, br", True),
        (b"br;q=1.0, gzip;q=0.5", True),
        (b"*", True),
        (b"deflate, *;q=0.1", True),
        (b"gzip;q=1, identity;q=1", True),
        (b"gzip ; q=0.001", True),
        (b"", False),
        (b"identity", False),
        (b"deflate, br", False),
        (b"gzip;q=0", False),
        (b"gzip;q=0.000, *", False),
        (b"*;q=0", False),
        (b"gzip;q=0.5, identity;q=0.8", False),
        (b"gzip;q=many", False),
        (b"gzippy", False),
    ],
)
def test_each_header_is_negotiated_by_the_rules(header, accepted):
    assert accepts_gzip(header) is accepted


def test_the_compressed_body_is_the_same_each_time_and_reads_back():
    body = b"a switch " * 1000

    made = compress_gzip(body, 6)

    assert gzip.decompress(made) == body
    assert made == compress_gzip(body, 6)


def test_the_etag_of_the_gzip_form_is_another_strong_one():
    assert gzip_etag(b'"17"') == b'"17-gzip"'
