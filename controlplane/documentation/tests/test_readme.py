"""The README stays short, and its pictures exist and load fast."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAX_WORDS = 600
MAX_PICTURE_BYTES = 1_500_000


def test_the_readme_has_at_most_600_words() -> None:
    assert len(README.split()) <= MAX_WORDS


def test_each_picture_of_the_readme_exists_and_is_small() -> None:
    names = re.findall(r'(?:src|srcset)="([^"]+)"|!\[[^\]]*\]\(([^)]+)\)', README)
    pictures = [ROOT / (tag or link) for tag, link in names]

    assert len(pictures) == 3
    assert all(0 < path.stat().st_size <= MAX_PICTURE_BYTES for path in pictures)
