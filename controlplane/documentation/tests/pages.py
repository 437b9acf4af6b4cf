"""The pages whose commands the docs runner runs."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent.parent
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", ROOT / "client/README.md", *ROOT.glob("docs/**/*.md"))
)


def read_page(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")
