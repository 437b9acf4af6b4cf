"""Template tag of the rows of report sections: a template is slow for thousands of cells."""

from collections.abc import Mapping
from html import escape  # As Django's, and faster; cells are plain text.
from typing import Any

from django import template
from django.utils.safestring import SafeString

from controlplane.core.templatetags.screen import moment
from switches.report.renderer import ReportCell

register = template.Library()


@register.simple_tag
def report_row(row: Mapping[str, Any], public_url: str) -> SafeString:
    """Render a row of a report section; its first cell links to the row's page."""
    first, *rest = row["cells"]
    path = escape(row["path"])
    link = f'<a href="{path}" data-url="{escape(public_url)}{path}">{_render_text(first.text)}</a>'
    return SafeString(f'<tr><th scope="row">{link}</th>{"".join(map(_render_cell, rest))}</tr>')


def _render_cell(cell: ReportCell) -> str:
    content = moment(cell.at) if cell.at else _render_text(cell.text)
    size = " is-long" if cell.is_long else ""
    return f'<td data-label="{escape(cell.label)}" class="is-{cell.kind}{size}">{content}</td>'


def _render_text(text: str) -> str:
    return f'<bdi dir="auto">{escape(text)}</bdi>'
