"""The frame of the emergency page, its content security policy, and parts that others share."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from controlplane.core.protocol import EMERGENCY_PAGE

from .facts import Installation
from .markup import EMPTY, Markup, fill, join

_STYLE = Markup((Path(__file__).parent / "style.css").read_text(encoding="utf-8"))
_STYLE_HASH = b64encode(sha256(_STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; img-src data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""Content security policy of the page: its own style and its own forms, nothing else."""

_LOGO = Markup(
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E%3Crect"
    " width='24' height='24' rx='6' fill='%23b42a12'/%3E%3Cpath d='M7 12h10' stroke='%23fff'"
    " stroke-width='4'/%3E%3C/svg%3E"
)
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>{title} · Switchgear</title>
<link rel="icon" href="{logo}">
<style>{style}</style>
</head>
<body>
<div class="environment{production}" role="region" aria-label="Environment">{environment}</div>
<main class="stack-l">
{content}
</main>
</body>
</html>
"""
_ERROR = """<h1>{title}</h1>
<p>{detail}</p>
<p><a class="button" href="{path}">Open the page</a></p>"""
_FORM = """<form class="stack-l" method="post" action="{path}">
{hidden}
{fields}
</form>"""
_CHOICE = """<label class="choice"><input type="radio" name="{name}" value="{value}"{attributes}>
<span><bdi dir="auto">{label}</bdi></span></label>"""


def render_page(title: str, installation: Installation, content: Iterable[Markup]) -> str:
    """Return a whole page."""
    return fill(
        _PAGE,
        title=title,
        style=_STYLE,
        logo=_LOGO,
        production=" production" if installation.is_production else "",
        environment=installation.environment or "Switchgear",
        content=join(content),
    )


def render_error(title: str, detail: str, installation: Installation) -> str:
    """Return a page for a request that no form of the page sends."""
    content = fill(_ERROR, title=title, detail=detail, path=EMERGENCY_PAGE)
    return render_page(title, installation, [content])


def render_form(hidden: Mapping[str, str], fields: Markup) -> Markup:
    inputs = (
        fill('<input type="hidden" name="{name}" value="{value}">', name=name, value=value)
        for name, value in hidden.items()
    )
    return fill(_FORM, path=EMERGENCY_PAGE, hidden=join(inputs), fields=fields)


def render_choice(
    name: str, value: str, label: str, *, is_checked: bool, is_required: bool = False
) -> Markup:
    attributes = (" checked" if is_checked else "") + (" required" if is_required else "")
    return fill(_CHOICE, name=name, value=value, label=label, attributes=attributes)


def render_switch(switch: str) -> Markup:
    scope, _, key = switch.partition(":")
    return fill(
        '<span class="mono"><span class="quiet">{scope}:</span>{key}</span>', scope=scope, key=key
    )


def render_problems(problems: Sequence[str], field: str) -> Markup:
    """Return what is wrong with a field; :func:`mark_invalid` refers to it."""
    if not problems:
        return EMPTY
    return fill(
        '<p class="problem" id="{field}-problem">{text}</p>', field=field, text=" ".join(problems)
    )


def mark_invalid(problems: Sequence[str], field: str, hint: str = "") -> Markup:
    """Return the attributes of an input that has problems, or only a hint."""
    described = " ".join(filter(None, (f"{field}-problem" if problems else "", hint)))
    describes = fill(' aria-describedby="{ids}"', ids=described) if described else EMPTY
    return Markup(describes + (' aria-invalid="true"' if problems else ""))


def count(number: int, one: str, several: str) -> str:
    return f"1 {one}" if number == 1 else f"{number:,} {several}"


def join_names(names: Iterable[str]) -> str:
    words = sorted(names)
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
