"""Patterns in the navigation stand for their pages."""

from pathlib import Path

from controlplane.documentation.navigation import expand_patterns


def test_patterns_are_replaced_by_their_pages(tmp_path: Path) -> None:
    for name in ("adr/0002.md", "adr/0001.md", "adr/README.md", "tutorials/first.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    adr = ["adr/README.md", "adr/0001.md", "adr/0002.md"]

    expanded = expand_patterns(
        [{"Home": "README.md"}, {"Learn": ["tutorials/*.md", "demo.md"]}, {"Why": "adr/*.md"}],
        tmp_path,
    )

    assert expanded == [
        {"Home": "README.md"},
        {"Learn": ["tutorials/first.md", "demo.md"]},
        {"Why": adr},
    ]


def test_a_section_without_pages_is_left_out(tmp_path: Path) -> None:
    assert expand_patterns([{"Learn": ["tutorials/*.md"]}], tmp_path) == []
