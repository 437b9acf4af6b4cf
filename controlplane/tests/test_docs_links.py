"""Links between documentation pages resolve, including those to headings."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted(
    path
    for path in [ROOT / "README.md", ROOT / "client" / "README.md", *ROOT.glob("docs/**/*.md")]
    if path.parent.name != "runbooks" or path.stem == "README"
)
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_link_leads_to_a_file_and_to_a_heading_in_it(page: Path) -> None:
    broken = [target for target in _links(page) if not _leads_somewhere(page, target)]

    assert broken == []


def test_a_link_to_nowhere_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One heading\n\n[gone](gone.md) [there](#one-heading) [not](#two)\n")

    assert [target for target in _links(page) if not _leads_somewhere(page, target)] == [
        "gone.md",
        "#two",
    ]


def test_every_page_is_reached_from_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / target.split("#")[0]).resolve() for target in _links(index)}

    pages = {path for path in (ROOT / "docs").glob("*.md") if path != index}
    assert pages - linked == set()


def _links(page: Path) -> list[str]:
    plain = _CODE.sub("", _FENCE.sub("", page.read_text(encoding="utf-8")))
    return [target for target in _LINK.findall(plain) if "://" not in target]


def _leads_somewhere(page: Path, target: str) -> bool:
    name, _, heading = target.partition("#")
    if name.startswith("/"):
        return True  # A page of the console: runbooks have those, and a test of their own.
    there = (page.parent / name).resolve() if name else page
    if not there.exists():
        return False
    return not heading or heading in _anchors(there)


def _anchors(page: Path) -> set[str]:
    """Return a page's anchors as GitHub makes them: lower case, no punctuation, dashes."""
    found: set[str] = set()
    for title in _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = sum(one == anchor or one.startswith(f"{anchor}-") for one in found)
        found.add(f"{anchor}-{number}" if anchor in found else anchor)
    return found
