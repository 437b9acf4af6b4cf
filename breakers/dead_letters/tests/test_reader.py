"""Reading a stream page by page, whatever ids it has."""

import uuid

import pytest

from breakers.dead_letters.letters.entries import ReadLimits
from breakers.dead_letters.redis_servers import reader, servers

MAX_ID = "18446744073709551615-18446744073709551615"
IDS = ("0-1", "1-1", "5-0", MAX_ID)
TWO = ReadLimits(entries=2)


@pytest.fixture
def name():
    name = f"axiom:dlq:{uuid.uuid4()}"
    client = servers.get_server("default").client
    for one in IDS:
        client.xadd(name, {"a": "x"}, id=one)
    yield name
    client.delete(name)


def test_a_stream_with_the_smallest_and_the_largest_id_is_read_to_its_end(name):
    pages = reader.iterate_pages("default", name, limits=TWO)
    found = [one.id for page in pages for one in page.entries]

    assert found == list(IDS)


def test_pages_from_the_newest_come_to_the_oldest(name):
    first = reader.read_page("default", name, newest_first=True, limits=TWO)
    second = reader.read_page("default", name, newest_first=True, limits=TWO, after="5-0")
    third = reader.read_page("default", name, newest_first=True, limits=TWO, after="0-1")

    assert [one.id for one in first.entries] == [MAX_ID, "5-0"]
    assert [one.id for one in second.entries] == ["1-1", "0-1"]
    assert third.entries == []


def test_nothing_is_behind_the_largest_id(name):
    page = reader.read_page("default", name, after=MAX_ID)

    assert page == reader.EntryPage([], False)


def test_long_values_and_many_fields_are_read_in_part_and_say_so(name):
    client = servers.get_server("default").client
    client.delete(name)
    client.xadd(name, {f"f{number}": "y" * 50 for number in range(9)}, id="1-1")

    (entry,) = reader.read_page(
        "default", name, limits=ReadLimits(value_bytes=10, fields=3)
    ).entries

    assert [len(value) for _, value in entry.pairs] == [10, 10, 10]
    assert entry.sizes == (50, 50, 50)
    assert entry.fields_total == 9
    assert not entry.is_whole


def test_an_entry_that_is_not_there_is_none(name):
    assert reader.read_entry("default", name, "7-7") is None
    assert reader.read_entry("default", name, "5-0").value(b"a") == b"x"


def test_some_are_read_together_in_the_order_of_their_ids_without_those_that_are_gone(name):
    entries = reader.read_entries("default", name, [MAX_ID, "7-7", "1-1", "0-1"])

    assert [one.id for one in entries] == [MAX_ID, "1-1", "0-1"]
    assert reader.read_entries("default", name, ["7-7"]) == []
    assert reader.read_entries("default", name, []) == []


def test_more_than_one_look_holds_are_all_read(name):
    client = servers.get_server("default").client
    client.delete(name)
    large = b"x" * (reader.BUDGET // 2 + 1)
    added = [client.xadd(name, {"a": large}, id=f"6-{number}").decode() for number in range(1, 6)]

    found = reader.read_entries("default", name, added, ReadLimits(value_bytes=10, entries=1))

    assert [one.id for one in found] == added
    assert {one.sizes for one in found} == {(len(large),)}


def test_of_an_entry_no_more_bytes_are_kept_than_its_limit_and_its_size_stays_true(name):
    client = servers.get_server("default").client
    client.delete(name)
    fields = {"first": "x" * 60, "second": "y" * 60, "third": "z" * 60}
    client.xadd(name, fields, id="6-1")
    size = sum(len(part) for pair in fields.items() for part in pair)

    entry = reader.read_entry("default", name, "6-1", limits=ReadLimits(total_bytes=133))

    assert entry.pairs == ((b"first", b"x" * 60), (b"second", b"y" * 60), (b"th", b""))
    assert (entry.size_bytes, entry.fields_total, entry.is_whole) == (size, 3, False)


def test_a_limit_of_one_entry_is_not_spent_by_another(name):
    entries = reader.read_page("default", name, limits=ReadLimits(total_bytes=2)).entries

    assert [one.pairs for one in entries] == [((b"a", b"x"),)] * len(IDS)
