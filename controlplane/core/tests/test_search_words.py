"""A search text has few words, however long it is."""

from datetime import UTC, datetime

import pytest

from controlplane.accounts.models.people import User
from controlplane.accounts.teams.state import TeamState
from controlplane.core.palette.registry import PaletteQuery
from controlplane.core.search_words import MAX_WORDS, split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" \n", []),
        ("Core  ORACLE core", ["core", "oracle"]),
        ("a b c d e f", ["a", "b", "c", "d", "e", "f"]),
        ("a b c d e F  g h", ["a", "b", "c", "d", "e", "f g h"]),
        ("a a b b c d e", ["a", "b", "c", "d e"]),
    ],
)
def test_text_after_the_first_words_counts_as_one(text: str, words: list[str]) -> None:
    assert split_words(text) == words


def test_palette_query_is_limited_to_max_words() -> None:
    text = " ".join(f"w{number}" for number in range(100))

    query = PaletteQuery(text, User(), datetime(2026, 1, 1, tzinfo=UTC), TeamState())

    assert len(query.words) == MAX_WORDS
