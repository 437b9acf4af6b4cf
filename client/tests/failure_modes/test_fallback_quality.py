"""A stand-in that looks like an answer is believed, kept, and nobody hurries to mend anything."""

import pytest

from switchgear import Answer, Fallback
from switchgear.patterns.answers import latest_answer
from switchgear.patterns.caches import MISSING, MemoryCache
from switchgear.patterns.counters import Counters

NONE_FOUND = 0


class Shop:
    """A stock service that can be made unavailable."""

    is_away = False

    def stock(self, item: str) -> int:
        if self.is_away:
            raise ConnectionError("the shop is away")
        return 7


def test_a_bare_default_can_not_be_told_from_an_answer_and_is_kept_as_one() -> None:
    shop, kept = Shop(), {}

    def stock(item: str) -> int:
        try:
            kept[item] = shop.stock(item)
        except ConnectionError:
            kept[item] = NONE_FOUND
        return kept[item]

    shop.is_away = True
    stock("bolt")
    shop.is_away = False

    assert kept == {"bolt": NONE_FOUND}


def test_a_stand_in_is_labelled_counted_and_says_what_it_stands_for() -> None:
    shop, counters = Shop(), Counters()
    shop.is_away = True
    fallback = Fallback("core->shop", default=NONE_FOUND, counters=counters)

    answer = fallback.run(shop.stock, "bolt")

    assert (answer.value, answer.source, answer.is_partial) == (NONE_FOUND, "default", True)
    assert answer.causes == ("ConnectionError: the shop is away",)
    assert counters.counted()["fallback"] == 1
    assert fallback.count_answers()["default"] == 1


def test_a_whole_answer_is_not_labelled() -> None:
    fallback = Fallback("core->shop", default=NONE_FOUND)

    assert fallback.run(Shop().stock, "bolt") == Answer(7)


def test_only_what_was_answered_is_kept_for_later() -> None:
    shop, cache = Shop(), MemoryCache(60.0)
    fallback = Fallback("core->shop", cache=cache, cache_key=lambda item: item, default=NONE_FOUND)
    stock = fallback(shop.stock)

    shop.is_away = True
    assert stock("bolt") == NONE_FOUND
    assert cache.get("bolt") is MISSING

    shop.is_away = False
    assert stock("bolt") == 7
    shop.is_away = True
    assert stock("bolt") == 7
    latest = latest_answer()
    assert latest is not None
    assert (latest.source, latest.is_partial) == ("cache", True)


def test_what_is_no_good_answer_is_replaced_and_never_kept() -> None:
    cache = MemoryCache(60.0)
    fallback = Fallback(
        "core->model", cache=cache, cache_key=lambda text: text, default="Not now.", is_good=bool
    )

    answer = fallback.run(lambda text: "", "why")

    assert (answer.value, answer.source, answer.is_partial) == ("Not now.", "default", True)
    assert cache.get("why") is MISSING


def test_without_anything_to_stand_in_the_own_error_comes_with_what_was_tried() -> None:
    shop = Shop()
    shop.is_away = True

    def other_shop(item: str) -> int:
        raise TimeoutError("the other one, too")

    fallback = Fallback("core->shop", other_shop)

    with pytest.raises(ConnectionError, match="the shop is away") as raised:
        fallback.run(shop.stock, "bolt")

    assert "the other one, too" in " ".join(raised.value.__notes__)
