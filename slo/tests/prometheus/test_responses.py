"""Numbers as Prometheus writes them, and hostile ones."""

import time

import orjson
import pytest

from slo.ingest.prometheus.responses import InvalidResponse, parse_counter


def scalar(text):
    return orjson.dumps({"data": {"resultType": "scalar", "result": [0, text]}})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("7.", 7),
        ("+.5", 0.5),
        ("1e3", 1000),
        ("2.5E-1", 0.25),
        (f"0.{'0' * 322}5", 5e-323),
    ],
)
def test_every_form_of_a_number_is_read(text, value):
    assert parse_counter(scalar(text)) == value


@pytest.mark.parametrize("text", ["", ".", "e1", "1e", "1..2", "0x10", " 1", "1\n"])
def test_what_only_looks_like_a_number_is_refused(text):
    with pytest.raises(InvalidResponse, match="must be a number"):
        parse_counter(scalar(text))


def test_largest_float_without_an_exponent_is_said_to_be_too_large():
    with pytest.raises(InvalidResponse, match="at most 2"):
        parse_counter(scalar(f"{1.7e308:f}"))


@pytest.mark.parametrize("text", ["1" * 6000 + "x", "1" * 250_000, "." + "1" * 250_000 + "e"])
def test_endless_digits_are_refused_at_once_and_shortly(text):
    began = time.process_time()

    with pytest.raises(InvalidResponse, match="must be a number") as refused:
        parse_counter(scalar(text))

    assert time.process_time() - began < 0.5
    assert len(str(refused.value)) < 400
