"""Blocks of a page and their markers."""

import pytest

from controlplane.documentation.blocks import Block, InvalidPage, parse_page


def test_blocks_have_their_line_language_title_and_text() -> None:
    page = (
        'a\n\n```sh\nls\n```\n\n1. b\n\n    ```python title="app.py"\n    x = 1\n      y\n    ```\n'
    )

    assert parse_page(page) == [
        Block(4, "sh", "", "ls\n"),
        Block(10, "python", "app.py", "x = 1\n  y\n"),
    ]


def test_a_longer_fence_contains_a_shorter_one() -> None:
    (block,) = parse_page("````markdown\n```sh\nls\n```\n````\n")

    assert block == Block(2, "markdown", "", "```sh\nls\n```\n")


def test_markers_belong_to_the_next_block() -> None:
    page = "<!-- fails -->\n<!-- expect: a: b -->\n\n<!-- expect: c -->\n" + 2 * "```sh\nls\n```\n"

    marked, plain = parse_page(page)

    assert marked.fails
    assert marked.expected == ["a: b", "c"]
    assert not plain.fails
    assert plain.expected == []


@pytest.mark.parametrize(
    ("marker", "url"),
    [("background", ""), ("background: http://127.0.0.1:1/a", "http://127.0.0.1:1/a")],
)
def test_a_block_in_the_background(marker: str, url: str) -> None:
    (block,) = parse_page(f"<!-- {marker} -->\n```sh\nsleep 9\n```")

    assert block.background == url


def test_a_block_that_is_not_run_has_a_reason() -> None:
    (block,) = parse_page("<!-- not run: needs a cluster -->\n```sh\nkubectl\n```")

    assert block.not_run == "needs a cluster"
    assert block.background is None


def test_other_comments_belong_to_the_text() -> None:
    page = "<!-- generated: events -->\n| a |\n<!-- end -->\n```sh\nls\n```\n"

    assert parse_page(page) == [Block(5, "sh", "", "ls\n")]


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ("```sh\nls\n", "line 1: this block has no end"),
        ("1. a\n\n   ```sh\n   ls\n   ```", "line 3: indent blocks in lists by 4 spaces"),
        ("```\nls\n```", "name the block's language"),
        ("```bash\nls\n```", "a block of type `sh`"),
        ("<!-- not run -->\n```sh\nls\n```", "'not run' needs a text"),
        ("<!-- expect: -->\n```sh\nls\n```", "'expect' needs a text"),
        ("<!-- notrun: x -->\n```sh\nls\n```", "unknown marker 'notrun'"),
        ("<!-- fails -->\n```python\nx\n```", "only blocks of type `sh`"),
        ("<!-- fails -->\n\ntext\n", "line 3: the marker above belongs to no block"),
        ("text\n\n<!-- fails -->\n", "line 4: the marker above belongs to no block"),
        ("<!-- fails -->\n<!-- not run: x -->\n```sh\nls\n```", "no other marker"),
    ],
)
def test_a_mistake_is_reported(page: str, problem: str) -> None:
    with pytest.raises(InvalidPage, match=problem):
        parse_page(page)
