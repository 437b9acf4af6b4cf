"""The colours of both themes, measured: WCAG 2.2 AA wherever one is written on another."""

import re
from pathlib import Path

import pytest
from django.conf import settings

CSS = (Path(settings.BASE_DIR) / "static/css/tokens.css").read_text()
SURFACES = ("canvas", "surface", "sunken", "hover")
TEXT = [(ink, on) for ink in ("ink", "ink-2", "ink-3", "accent", "stop") for on in SURFACES] + [
    ("flow", "canvas"),
    ("flow", "surface"),
    ("flow", "hover"),
    ("ramp", "canvas"),
    ("ink", "accent-soft"),
    ("ink-2", "accent-soft"),
    ("on-stop-soft", "stop-soft"),
    ("stop", "stop-soft"),
    ("on-stop-solid", "stop-solid"),
    ("on-stop-solid", "stop-solid-hover"),
    ("on-ramp-soft", "ramp-soft"),
    ("on-flow-soft", "flow-soft"),
    ("on-warn-soft", "warn-soft"),
    ("on-warn-soft", "surface"),
    ("on-inverse", "inverse"),
    ("on-inverse", "ink-2"),
    ("on-production", "production"),
    ("on-elsewhere", "elsewhere"),
]
# What has to be seen though it is not read: edges of fields, focus rings, state icons.
SEEN = [("control", on) for on in ("canvas", "surface")] + [
    ("accent", on) for on in (*SURFACES, "stop-soft", "warn-soft")
]


# A token is one color, or `light-dark(…)` of two.
TOKENS = re.findall(r"--([\w-]+): (?:light-dark\()?(#[0-9a-f]{6})(?:, (#[0-9a-f]{6})\))?;", CSS)
LIGHT = {name: light for name, light, _ in TOKENS}
DARK = {name: dark or light for name, light, dark in TOKENS}


def luminance(colour):
    def linear(part):
        share = int(part, 16) / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(colour[i : i + 2]) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_the_measure_itself():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("ink", "on"), TEXT)
def test_text_can_be_read(theme, ink, on):
    assert contrast(theme[ink], theme[on]) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("mark", "on"), SEEN)
def test_mark_can_be_seen(theme, mark, on):
    assert contrast(theme[mark], theme[on]) >= 3


def test_the_themes_differ():
    assert len(LIGHT) > 30
    assert LIGHT["surface"] != DARK["surface"]


def test_every_token_used_exists():
    used = set(re.findall(r"var\(--([\w-]+)", CSS))
    defined = set(re.findall(r"^\s*--([\w-]+):", CSS, re.MULTILINE))

    assert used <= defined
