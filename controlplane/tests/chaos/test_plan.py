"""Plans of faults: repeatable, and complete."""

from itertools import islice

from controlplane.tests.chaos.plan import KINDS, Kind, make_plan

DECK = sum(kind.count for kind in KINDS.values())


def test_same_seed_gives_the_same_faults() -> None:
    first, again, other = (list(islice(make_plan(seed), 50)) for seed in (7, 7, 8))

    assert first == again
    assert first != other


def test_each_deck_has_every_kind_as_often_as_it_says() -> None:
    drawn = [fault.kind for fault in islice(make_plan(1), 2 * DECK)]

    for part in (drawn[:DECK], drawn[DECK:]):
        assert {name: part.count(name) for name in KINDS} == {
            name: kind.count for name, kind in KINDS.items()
        }


def test_fault_lasts_as_long_as_its_kind_says() -> None:
    kinds = {"moment": Kind(), "while": Kind((2, 5))}

    faults = list(islice(make_plan(1, kinds), 40))

    assert {fault.seconds for fault in faults if fault.kind == "moment"} == {0.0}
    lasting = [fault.seconds for fault in faults if fault.kind == "while"]
    assert 2 <= min(lasting) < max(lasting) <= 5
    assert all(0 <= fault.choice < 1 for fault in faults)
