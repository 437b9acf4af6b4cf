"""Weaknesses of reasons."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switches.report.reason_quality import MIN_LISTED_POINTS, assess, assess_quickly
from switches.report.renderer import format_value, layout_bars


@pytest.mark.parametrize(
    "reason",
    [
        "OpenAI 5xx on completions since 02:10, INC-4411",
        "checkout-api returns 502 for a third of all carts",
        "결제 이중 청구 의심, 재현 확인됨 INC-4411",
        "ارتفاع معدل الأخطاء في خدمة الدفع منذ الساعة 02:10",
        "Duplicate charges from Stripe, 41 customers told us",
    ],
)
def test_a_reason_with_a_number_and_a_name_is_not_listed(reason):
    assert assess(reason).points < MIN_LISTED_POINTS


@pytest.mark.parametrize(
    ("reason", "lacks"),
    [
        ("card payments charged twice", ["no number", "no component", "short"]),
        ("the whole checkout behaves oddly and customers are complaining", ["number", "component"]),
        ("결제 이중 청구", ["no number", "short"]),
        ("please stop everything now", ["says neither", "no number", "no component", "short"]),
    ],
)
def test_a_weak_reason_is_listed_with_what_it_lacks(reason, lacks):
    found = assess(reason)

    assert found.points >= MIN_LISTED_POINTS
    assert len(found.why) == len(lacks)
    assert all(word in why for word, why in zip(lacks, found.why, strict=True))


def test_empty_words_are_weaker_than_a_short_reason():
    assert assess("urgent issue, stop now please").points > assess("payments failing").points


@given(st.text(max_size=200))
def test_any_text_at_all_can_be_judged(text):
    assert 0 <= assess_quickly(text).points <= assess(text).points


@given(st.lists(st.tuples(st.text(max_size=5), st.floats(0, 1e9)), max_size=12))
def test_bars_stay_on_the_paper_in_proportion(values):
    drawing = layout_bars(values)

    assert len(drawing["bars"]) == len(values)
    for bar, (_, value) in zip(drawing["bars"], values, strict=True):
        assert 0 <= bar["x"] <= bar["x"] + bar["width"] <= drawing["width"]
        assert 0 <= bar["y"] <= drawing["ground"]
        assert abs(bar["y"] + bar["height"] - drawing["ground"]) < 0.11
        assert (bar["height"] > 0) <= (value > 0)


def test_numbers_are_short_and_true():
    texts = [format_value(value) for value in (0, 0.04, 0.25, 7.0, 12.34, 168.0, 1240.4)]

    assert texts == ["0", "< 0.1", "0.2", "7", "12.3", "168", "1,240"]
