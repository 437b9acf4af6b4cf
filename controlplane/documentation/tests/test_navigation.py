"""Patterns in the navigation stand for their pages."""

from controlplane.documentation.navigation import expand_patterns


def test_patterns_are_replaced_by_their_pages() -> None:
    pages = ["adr/0002.md", "adr/0001.md", "adr/old/0000.md", "adr/README.md", "tutorials/first.md"]

    expanded = expand_patterns(
        [{"Home": "README.md"}, {"Learn": ["tutorials/*.md", "demo.md"]}, {"Why": "adr/*.md"}],
        pages,
    )

    assert expanded == [
        {"Home": "README.md"},
        {"Learn": ["tutorials/first.md", "demo.md"]},
        {"Why": ["adr/README.md", "adr/0001.md", "adr/0002.md"]},
    ]


def test_a_section_without_pages_is_left_out() -> None:
    assert expand_patterns([{"Learn": ["tutorials/*.md"]}], ["demo.md"]) == []
