"""The score of words: whole before beginning, beginning before somewhere, all of them or none."""

import pytest

from controlplane.core.palette.relevance import score_text


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("audit", "audited things"),
        ("ramps", "safety of ramps"),
        ("segment:finance", "segment:refinance"),
        ("feature:mail", "feature:mail-in-other-words"),
    ],
)
def test_closer_title_weighs_more(better, worse):
    words = {"segment:finance": ["fin"], "feature:mail": ["mail"]}.get(better, [better[:4]])

    assert score_text(words, better) > score_text(words, worse) > 0


def test_word_that_is_nowhere_leaves_nothing():
    assert score_text(["weekly", "zebra"], "Weekly report", "sign off") == 0.0


def test_word_of_the_second_text_counts_less_than_of_the_title():
    assert 0 < score_text(["sign"], "Weekly report", "sign off") < score_text(["sign"], "Sign off")
