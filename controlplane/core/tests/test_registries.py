"""Registries of kinds, apart from the kinds."""

import copy
import threading
from dataclasses import dataclass

import pytest

from controlplane.core.registry import KindRegistry


@dataclass(frozen=True)
class Kind:
    name: str


@pytest.fixture
def registry() -> KindRegistry[Kind]:
    return KindRegistry[Kind]()


def test_choices_copied_with_a_form_follow_the_registry(registry: KindRegistry[Kind]) -> None:
    choices = copy.deepcopy(registry.choices)

    registry.register(Kind("segment"))

    assert choices() == [("segment", "segment")]


def test_name_registered_twice_is_refused(registry: KindRegistry[Kind]) -> None:
    registry.register(Kind("segment"))

    with pytest.raises(ValueError, match="segment is registered twice"):
        registry.register(Kind("segment"))


def test_kinds_registered_by_several_threads_are_all_there(registry: KindRegistry[Kind]) -> None:
    def register(letter: str) -> None:
        for number in range(100):
            registry.register(Kind(f"{letter}{number}"))

    threads = [threading.Thread(target=register, args=(letter,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(registry) == 400
