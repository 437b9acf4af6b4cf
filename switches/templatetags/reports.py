"""Template tag of the rows of report sections: a template is slow for thousands of cells."""

from collections.abc import Mapping
from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from controlplane.core.templatetags.screen import moment
from switches.report.renderer import ReportCell

register = template.Library()


@register.simple_tag
def report_row(row: Mapping[str, Any], public_url: str) -> SafeString:
    """Render a row of a report section; its first cell links to the row's page."""
    first, *rest = row["cells"]
    return format_html(
        '<tr><th scope="row"><a href="{0}" data-url="{1}{0}"><bdi dir="auto">{2}</bdi></a></th>'
        "{3}</tr>",
        row["path"],
        public_url,
        first.text,
        format_html_join("", '<td data-label="{}" class="is-{}{}">{}</td>', map(_render, rest)),
    )


def _render(cell: ReportCell) -> tuple[str, str, str, str]:
    content = format_html('<bdi dir="auto">{}</bdi>', cell.text)
    if cell.at:
        content = SafeString(moment(cell.at))
    return cell.label, cell.kind, " is-long" if cell.is_long else "", content
