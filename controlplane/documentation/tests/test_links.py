"""Links of pages, which fit GitHub, become links that fit the site."""

from dataclasses import replace
from pathlib import Path

import pytest

from controlplane.documentation.links import (
    Site,
    remove_console_links,
    remove_repository_links,
    rewrite_links,
)

REPOSITORY = "https://git.example/switchgear"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    for name in ("docs/operate.md", "docs/adr/README.md", "client/README.md", "deploy/a.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    uris = {
        tmp_path / "docs/operate.md": "operate.md",
        tmp_path / "docs/adr/README.md": "adr/README.md",
        tmp_path / "client/README.md": "client.md",
    }
    return Site(uris, tmp_path, REPOSITORY)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("[a](operate.md#in-a-hurry)", "[a](operate.md#in-a-hurry)"),
        ("[a](adr)", "[a](adr/README.md)"),
        ("[a](../client/README.md#cli)", "[a](client.md#cli)"),
        ('[a](../deploy/a.yaml "title")', f'[a]({REPOSITORY}/blob/main/deploy/a.yaml "title")'),
        ("[a](../deploy)", f"[a]({REPOSITORY}/tree/main/deploy)"),
        ("[a]: ../deploy/a.yaml", f"[a]: {REPOSITORY}/blob/main/deploy/a.yaml"),
        ('<img src="../deploy/a.yaml">', f'<img src="{REPOSITORY}/blob/main/deploy/a.yaml">'),
        ("[`f(x)`](../deploy)", f"[`f(x)`]({REPOSITORY}/tree/main/deploy)"),
        ("[a](../deploy/missing.yaml)", "[a](../deploy/missing.yaml)"),
        ("[a](/switches/) [b](#here)", "[a](/switches/) [b](#here)"),
        ("[a](https://a.example/../x)", "[a](https://a.example/../x)"),
        ("`[a](../deploy)`", "`[a](../deploy)`"),
        ("```sh\n[a](../deploy)\n```", "```sh\n[a](../deploy)\n```"),
    ],
)
def test_a_link_of_a_page(site: Site, link: str, expected: str) -> None:
    source = site.root / "docs" / "operate.md"

    assert rewrite_links(link, source, "operate.md", site) == expected


def test_a_link_of_a_page_from_another_folder(site: Site) -> None:
    source = site.root / "client" / "README.md"

    text = rewrite_links("[a](../docs/operate.md) [b](../deploy)", source, "client.md", site)

    assert text == f"[a](operate.md) [b]({REPOSITORY}/tree/main/deploy)"


def test_links_to_the_console_become_text_where_there_is_none() -> None:
    text = "[*Alerts*](/alerts/) ![a](/b.png) [c](c.md) [`d`](//e.example)"

    assert remove_console_links(text) == "*Alerts* ![a](/b.png) [c](c.md) `d`"


def test_links_to_the_repository_become_text_where_it_is_unknown() -> None:
    html = f'<a href="{REPOSITORY}/tree/main/a"><code>a</code></a> <a href="{REPOSITORY}x/">b</a>'

    text = remove_repository_links(html, REPOSITORY)

    assert text == f'<code>a</code> <a href="{REPOSITORY}x/">b</a>'


def test_without_a_checkout_a_missing_file_is_in_the_repository(site: Site) -> None:
    image = replace(site, is_checkout=False)
    source = site.root / "docs" / "operate.md"

    assert rewrite_links("[a](../bench/x.py) [b](missing.md)", source, "operate.md", image) == (
        f"[a]({REPOSITORY}/blob/main/bench/x.py) [b](missing.md)"
    )


def test_a_link_after_a_fence_in_a_list_is_rewritten(site: Site) -> None:
    text = "1. a\n\n   ````sh\n   ```\n   [a](../deploy)\n   ````\n\n[a](../deploy)"

    rewritten = rewrite_links(text, site.root / "docs" / "operate.md", "operate.md", site)

    assert rewritten.count(REPOSITORY) == 1
    assert rewritten.endswith(f"[a]({REPOSITORY}/tree/main/deploy)")
