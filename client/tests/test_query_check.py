"""The check of the source documents: its order, its words, its patience."""

from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace

import pytest

from switchgear import Switchgear
from switchgear.testing import Console


@dataclass
class Query:
    segment: dict[str, str] = field(default_factory=lambda: {"department": "finance"})
    intent: str | None = "nl2sql"
    experiments: tuple[str, ...] = ("blue", "green")


@pytest.mark.parametrize(
    ("switch", "told"),
    [
        ("global:all", "system temporarily disabled"),
        ("segment:finance", "segment finance disabled: data leak suspected"),
        ("feature:nl2sql", "feature disabled"),
        ("experiment:green", "experiment green disabled"),
    ],
)
def test_user_is_told_the_words_of_the_documents(switch, told):
    console = Console()
    client = console.client()
    assert client.check_allowed(Query()) == (True, None)

    console.engage(switch, reason="data leak suspected")

    assert client.check_allowed(Query()) == (False, told)


def test_order_is_global_segment_feature_experiment_and_the_first_one_counts():
    console = Console()
    client = console.client()
    told = []
    switches = ["global:all", "segment:finance", "feature:nl2sql", "experiment:blue"]
    for switch in [*switches, "experiment:green"]:
        console.engage(switch, reason="why")

    for switch in [*switches, "experiment:green"]:
        told.append(client.check_allowed(Query())[1])
        console.release(switch)

    assert told == [
        "system temporarily disabled",
        "segment finance disabled: why",
        "feature disabled",
        "experiment blue disabled",
        "experiment green disabled",
    ]
    assert client.check_allowed(Query()) == (True, None)


@pytest.mark.parametrize(
    "query",
    [
        None,
        SimpleNamespace(),
        SimpleNamespace(segment=None, intent=None, experiments=None),
        SimpleNamespace(segment={}, intent="chat", experiments=[]),
        SimpleNamespace(segment={"department": None}, intent=None, experiments=iter(())),
        SimpleNamespace(segment=object(), intent=7, experiments=3.5),
    ],
)
def test_query_that_lacks_things_is_decided_by_what_it_has(query):
    console = Console()
    client = console.client()
    console.engage("segment:finance")
    assert client.check_allowed(query) == (True, None)

    console.engage("global")

    assert client.check_allowed(query) == (False, "system temporarily disabled")


def test_experiments_of_any_iterable_are_checked():
    console = Console()
    client = console.client()
    console.engage("experiment:green")

    for experiments in (["blue", "green"], {"green"}, iter(("green",)), "green"):
        query = SimpleNamespace(segment={}, intent=None, experiments=experiments)
        assert client.check_allowed(query) == (False, "experiment green disabled")


def test_targeting_key_of_the_query_says_whether_it_is_in_a_ramp():
    console = Console()
    client = console.client()
    console.ramp("feature:nl2sql", 50)

    def answers(key):
        query = SimpleNamespace(segment={}, intent="nl2sql", experiments=(), targeting_key=key)
        return {client.check_allowed(query) for _ in range(20)}

    assert all(len(answers(f"user-{number}")) == 1 for number in range(20))
    assert {answer for number in range(20) for answer in answers(f"user-{number}")} == {
        (True, None),
        (False, "feature disabled"),
    }


class Fails:
    """A query whose department is found out when it is asked for, and can't be."""

    @property
    def segment(self):
        return self.request.department


class Remembers:
    @cached_property
    def intent(self):
        return self.request.intent


@pytest.mark.parametrize("query", [Fails(), Remembers()])
def test_property_that_fails_is_not_taken_for_one_that_is_not_there(query):
    console = Console()
    client = console.client()

    with pytest.raises(AttributeError, match="request"):
        client.check_allowed(query)


def test_nothing_known_is_allowed():
    assert Switchgear(None).check_allowed(Query()) == (True, None)
