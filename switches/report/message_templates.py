"""Message templates of the weekly report."""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, Facts, MessageTemplate


def _name_report(facts: Facts) -> str:
    """Return `Weekly report 2026-W47 of Payments`; facts of earlier releases name no team."""
    return f"Weekly report {facts.get('week', '?')}{facts.get('of', '')}"


MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "report.ready",
        "📋",
        lambda facts: f"{_name_report(facts)}{facts.get('kind', '')}: {facts.get('headline', '?')}",
        (
            ("First", "line_1"),
            ("Then", "line_2"),
            ("And", "line_3"),
            ("Also", "line_4"),
            ("Counts", "counts"),
            ("Environment", "environment"),
            ("Audit anchor", "anchor"),
        ),
        when="the weekly report was generated",
    ),
    MessageTemplate(
        "report.unsigned",
        "🖊️",
        lambda facts: f"{_name_report(facts)} is not signed off yet: {facts.get('headline', '?')}",
        (("First", "line_1"), ("Then", "line_2"), ("Counts", "counts")),
        when="the weekly report is not signed off",
        severity="warning",
    ),
    MessageTemplate(
        "report.signed",
        "🖋️",
        lambda facts: f"{_name_report(facts)} signed off",
        (("By", "by"), ("Comment", "comment")),
        when="the weekly report was signed off",
    ),
)
