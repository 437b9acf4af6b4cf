"""Names of the streams of dead letters."""

import pytest

from switchgear.dlq import Names


@pytest.mark.parametrize(
    ("pattern", "origin", "dead"),
    [
        ("axiom:dlq:{stream}=axiom:{stream}", "axiom:events", "axiom:dlq:events"),
        ("axiom:dlq:{stream}=axiom:{stream}", "axiom:{events}", "axiom:dlq:{events}"),
        ("{axiom}:{stream}:dead={axiom}:{stream}", "{axiom}:a:b", "{axiom}:a:b:dead"),
        ("dead:{{stream}}={{stream}}", "{events}", "dead:{events}"),
        ("{stream}.dead={stream}", "é", "é.dead"),
    ],
)
def test_a_stream_named_like_the_pattern_has_its_dead_letters(pattern, origin, dead):
    assert Names.parse(pattern).dead_of(origin) == dead


@pytest.mark.parametrize("origin", ["events", "axiom:", "", "Axiom:events"])
def test_another_name_is_refused(origin):
    with pytest.raises(ValueError, match="dead_stream="):
        Names().dead_of(origin)


@pytest.mark.parametrize(
    "pattern", ["", "a=b", "{stream}={stream}", "a:{stream}", "{stream}{stream}=a:{stream}"]
)
def test_a_pattern_that_maps_nothing_is_refused(pattern):
    with pytest.raises(ValueError, match="must each contain"):
        Names.parse(pattern)
