"""Tables in pages that are generated from registries: `make docs-tables` writes them.

A table stands between `<!-- generated: NAME ARGUMENT… -->` and `<!-- end -->`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from fnmatch import fnmatchcase

from prometheus_client.core import Metric

from controlplane.core.gates import kinds
from controlplane.core.message_templates import MESSAGE_TEMPLATES
from controlplane.core.retention import RETENTION_RULES
from controlplane.documentation.authority_matrix import render_authority_matrix

_REGION = re.compile(
    r"(?P<start><!-- generated: (?P<name>\w+)(?P<arguments>[^>]*?) *-->\n)(?P<table>.*?)"
    r"(?P<end>\n<!-- end -->)",
    re.DOTALL,
)
Table = Callable[[Sequence[str]], list[str]]
"""Function of a marker's arguments that returns the lines of a Markdown table."""


@dataclass(frozen=True)
class MetricSource:
    """Metric families of a process; `survivors` are the names reported without PostgreSQL."""

    families: Sequence[Metric]
    survivors: frozenset[str] = field(default_factory=frozenset)


def replace_tables(page: str, tables: Mapping[str, Table]) -> str:
    """Return a page with all its generated tables written again."""

    def replace(match: re.Match[str]) -> str:
        lines = tables[match["name"]](match["arguments"].split())
        return "\n".join([match["start"], *lines, match["end"]])

    return _REGION.sub(replace, page)


def build_tables(source: MetricSource) -> dict[str, Table]:
    """Return all tables by the name that markers use."""
    return {
        "authority": render_authority_matrix,
        "events": render_events,
        "gates": lambda _: ["| gate | passes when |", "|---|---|", *kinds.document_kinds()],
        "metrics": lambda patterns: render_metrics(source, patterns),
        "retention": lambda _: render_retention_rules(),
    }


def render_events(groups: Iterable[str]) -> list[str]:
    """Return the events of the groups, such as `ramp` for `ramp.started`."""
    rows = [
        f"| `{event}` | {template.severity} | {template.when} |"
        for group in groups
        for event, template in MESSAGE_TEMPLATES.items()
        if event.partition(".")[0] == group
    ]
    return ["| event | severity | when |", "|---|---|---|", *rows]


def render_metrics(source: MetricSource, patterns: Iterable[str]) -> list[str]:
    """Return the metrics whose names without `switchgear_` match a pattern; * marks survivors."""
    rows = ["| metric | type | labels | description |", "|---|---|---|---|"]
    for pattern in patterns:
        for family in source.families:
            if fnmatchcase(family.name.removeprefix("switchgear_"), pattern):
                rows.append(_render_metric(family, family.name in source.survivors))
    return rows


def _render_metric(family: Metric, survives: bool) -> str:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    labels = ", ".join(f"`{label}`" for label in getattr(family, "_labelnames", ()))
    mark = " *" if survives else ""
    text = family.documentation.replace("|", "\\|")
    return f"| `{name}`{mark} | {family.type} | {labels} | {text} |"


def render_retention_rules() -> list[str]:
    rows = [
        f"| `{rule.name}` | {rule.why} | {describe_period(rule.period)}"
        f" | {_describe_bounds(rule.bounds)} | {rule.exempt} |"
        for rule in sorted(RETENTION_RULES.values(), key=lambda rule: rule.name)
    ]
    return ["| Rule | What | Kept | `KEPT_DAYS` | Stays anyway |", "|---|---|---|---|---|", *rows]


def describe_period(period: timedelta) -> str:
    if not period:
        return "until it ends"
    hours = period // timedelta(hours=1)
    return f"{period.days} d" if hours > 24 and hours % 24 == 0 else f"{hours} h"


def _describe_bounds(bounds: tuple[int, int] | None) -> str:
    return "no" if bounds is None else f"{bounds[0]}–{bounds[1]}"
