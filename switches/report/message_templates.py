"""Message templates of the weekly report."""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "report.ready",
        "📋",
        "Weekly report {week}{kind}: {headline}",
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
        "Weekly report {week} is not signed off yet: {headline}",
        (("First", "line_1"), ("Then", "line_2"), ("Counts", "counts")),
        when="the weekly report is not signed off",
        severity="warning",
    ),
    MessageTemplate(
        "report.signed",
        "🖋️",
        "Weekly report {week} signed off",
        (("By", "by"), ("Comment", "comment")),
        when="the weekly report was signed off",
    ),
)
