"""Requests to a model stay within their token limit with any strategies."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgear.llm.tokens import (
    ContentTooLarge,
    DropOptional,
    Part,
    Split,
    Summarise,
    TokenBudget,
    estimate,
    fail_fast,
    split_text,
)
from tests.hypothesis_examples import examples


def words(text):
    return len(text.split())


def texts(requests):
    return [[part.text for part in request] for request in requests]


def test_fitting_request_is_unchanged():
    def never(requests, budget):
        raise AssertionError("there was no need")

    budget = TokenBudget(10, reserve=4, count=words, strategies=(never,))
    parts = [Part("one two", is_optional=True), Part("three four five six")]

    assert budget.fit(parts) == (tuple(parts),)
    assert budget.fit(["one", "two"]) == ((Part("one"), Part("two")),)
    assert budget.fit([]) == ()


def test_answer_has_room_left():
    budget = TokenBudget(10, reserve=4, count=words, strategies=())

    assert budget.room == 6
    with pytest.raises(ContentTooLarge, match="7 tokens, 6 allowed"):
        budget.fit([Part("a b c d e f g")])
    with pytest.raises(ValueError, match="no room"):
        TokenBudget(10, reserve=10)


def test_earlier_context_is_summarised_four_to_one_and_the_rest_stays():
    asked = []

    def summarise(text, tokens):
        asked.append((text, tokens))
        return "all about it"

    budget = TokenBudget(10, count=words, strategies=(Summarise(summarise),))
    parts = [
        Part("system"),
        Part("a b c d e f", is_earlier=True),
        Part("g h i j k l", is_earlier=True),
        Part("the question"),
    ]

    (request,) = budget.fit(parts)

    assert asked == [("a b c d e f\ng h i j k l", 3)]
    assert [part.text for part in request] == ["system", "all about it", "the question"]


def test_summary_that_is_too_long_is_cut_off():
    budget = TokenBudget(10, count=len, strategies=(Summarise(lambda text, tokens: "x" * 100),))

    ((part,),) = budget.fit([Part("y" * 36, is_earlier=True)])

    assert part.text == "x" * 9


def test_optional_parts_go_by_priority_and_no_more_of_them_than_need_to():
    budget = TokenBudget(6, count=words, strategies=(DropOptional(),))
    parts = [
        Part("must be there"),
        Part("nice to have", is_optional=True, priority=5),
        Part("hardly read", is_optional=True, priority=1),
        Part("x", is_optional=True, priority=1),
    ]

    assert texts(budget.fit(parts)) == [["must be there", "nice to have"]]


def test_too_much_is_split_in_order_with_the_head_in_each():
    budget = TokenBudget(4, count=words, strategies=(Split(head=1),))
    parts = [Part("system"), Part("a b"), Part("c d"), Part("e f g h i")]

    requests = budget.fit(parts)

    assert texts(requests) == [
        ["system", "a b"],
        ["system", "c d"],
        ["system", "e f g "],
        ["system", "h i"],
    ]


def test_split_sends_as_much_at_once_as_fits():
    budget = TokenBudget(2, count=words, strategies=(Split(),))

    requests = budget.fit([Part(letter) for letter in "abcde"])

    assert texts(requests) == [["a", "b"], ["c", "d"], ["e"]]


def test_text_is_cut_at_the_end_of_a_sentence_where_there_is_one():
    text = "First sentence. Second one. " + "Third that is somewhat longer"

    pieces = split_text(text, 30, len)

    assert pieces == ["First sentence. Second one. ", "Third that is somewhat longer"]


def test_strategies_go_on_where_the_one_before_left_off():
    budget = TokenBudget(
        5,
        count=words,
        strategies=(Summarise(lambda text, tokens: "sum"), DropOptional(), Split()),
    )
    parts = [
        Part("e " * 8, is_earlier=True),
        Part("optional words", is_optional=True),
        Part("a b c d"),
        Part("f g h"),
    ]

    assert texts(budget.fit(parts)) == [["sum", "a b c d"], ["f g h"]]


def test_fail_fast_stops_before_the_next_strategy():
    budget = TokenBudget(2, count=words, strategies=(fail_fast, Split()))

    with pytest.raises(ContentTooLarge) as refused:
        budget.fit([Part("a b c d")])

    assert (refused.value.tokens, refused.value.room) == (4, 2)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


def test_prompt_is_in_no_error_and_no_repr():
    with pytest.raises(ContentTooLarge) as refused:
        TokenBudget(1, strategies=(fail_fast,)).fit([Part("안녕하세요 비밀")])

    assert "비밀" not in str(refused.value)
    assert "비밀" not in repr(Part("비밀"))


def test_estimate_counts_bytes_not_characters():
    assert estimate("") == 0
    assert estimate("hello world") == 4
    assert estimate("안녕") == 2
    assert estimate("\ud800") == 1


def bytes_and_more(text):
    """Return tokens that are not additive, like those of real tokenizers."""
    return len(text.encode()) // 2 + (text.count("a") % 3)


PARTS = st.lists(
    st.builds(
        Part,
        st.text(max_size=40),
        is_optional=st.booleans(),
        priority=st.integers(0, 3),
        is_earlier=st.booleans(),
    ),
    max_size=6,
)
STRATEGIES = st.permutations(
    [Summarise(lambda text, tokens: text[::2]), DropOptional(), Split(), Split(head=1), fail_fast]
).flatmap(lambda all_of_them: st.integers(0, 5).map(lambda n: all_of_them[:n]))


@given(
    parts=PARTS,
    strategies=STRATEGIES,
    limit=st.integers(1, 80),
    reserve=st.integers(0, 20),
    overhead=st.integers(0, 4),
    count=st.sampled_from([estimate, len, words, bytes_and_more]),
)
def test_no_request_ever_exceeds_the_limit_less_the_reserve(
    parts, strategies, limit, reserve, overhead, count
):
    limit += reserve
    budget = TokenBudget(
        limit, reserve=reserve, overhead=overhead, count=count, strategies=strategies
    )
    try:
        requests = budget.fit(parts)
    except ContentTooLarge:
        return
    for request in requests:
        assert sum(count(part.text) + overhead for part in request) <= limit - reserve


@examples(50)
@given(parts=PARTS, limit=st.integers(4, 40))
def test_split_keeps_all_text(parts, limit):
    budget = TokenBudget(limit, count=len, strategies=(Split(),))

    requests = budget.fit(parts)

    sent = "".join(part.text for request in requests for part in request)
    assert sent == "".join(part.text for part in parts)


def test_overhead_of_a_part_is_not_summarized():
    asked = []

    def summarise(text, tokens):
        asked.append(tokens)
        return "a b c"

    budget = TokenBudget(12, overhead=2, count=words, strategies=(Summarise(summarise),))

    ((first, _),) = budget.fit([Part("w " * 12, is_earlier=True), Part("the question")])

    assert (asked, first.text) == ([3], "a b c")


def test_unfitting_summary_is_left_to_the_next_strategy():
    """A single character of the summary exceeds its maximum."""
    budget = TokenBudget(
        3,
        count=lambda text: sum(9 if letter == "#" else 1 for letter in text),
        strategies=(Summarise(lambda text, tokens: "##"), DropOptional()),
    )
    parts = [Part("abcdefgh", is_earlier=True, is_optional=True), Part("why")]

    assert texts(budget.fit(parts)) == [["why"]]


def test_leaving_everything_out_is_no_way_to_fit():
    budget = TokenBudget(3, count=words)

    with pytest.raises(ContentTooLarge, match="7 tokens, 3 allowed"):
        budget.fit([Part("a b c d e f g", is_optional=True)])
    assert budget.fit([Part("", is_optional=True)]) == ((Part("", is_optional=True),),)
