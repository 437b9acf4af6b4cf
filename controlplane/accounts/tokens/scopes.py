"""Descriptions of the scopes by area, for the form that creates tokens."""

AREAS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Switches",
        (
            ("switches:read", "ask what is stopped: what a service needs"),
            ("report:write", "report calls and breakers: what a service needs too"),
            ("switches:write", "engage and release"),
            ("switches:trip", "let monitoring ask for a stop"),
            ("reports:read", "read the weekly reports"),
        ),
    ),
    ("Ramps", (("ramps:write", "begin, advance and abort"), ("gates:write", "tell gates"))),
    (
        "Breakers",
        (
            ("breakers:read", "read breakers and policies"),
            ("breakers:write", "force breakers, change policies"),
        ),
    ),
    (
        "Dead letters",
        (("dlq:read", "read letters"), ("dlq:write", "add, retry and discard letters")),
    ),
    ("SLOs", (("slo:read", "read SLOs and budgets"), ("slo:write", "send points, change SLOs"))),
    (
        "Looking on",
        (("audit:read", "read the audit trail"), ("metrics:read", "scrape the metrics")),
    ),
)
