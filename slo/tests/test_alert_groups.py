"""Alerts of one cause form a group; everything else stays apart."""

from datetime import UTC, datetime, timedelta

import pytest

from slo.arithmetic.alert_groups import GroupableAlert, assign_groups, link_alert

AT = datetime(2026, 11, 22, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def links(service="", subject="x", switches=(), changed=()):
    return link_alert(service=service, subject=subject, switches=switches, changed=changed)


CORE, ORACLE, SYNAPSE = links("core"), links("oracle"), links("synapse")
BREAKER = links("core", "core->oracle")
TRIPPING = links("oracle", switches=["experiment:rag"])
SWITCH = links(subject="experiment:rag", switches=["experiment:rag"])
OVERRIDE = ["core->synapse"]


@pytest.mark.parametrize(
    ("alerts", "groups"),
    [
        # Same service, same minute.
        ([(1, 0, CORE), (2, 0, CORE)], [1, 1]),
        ([(1, 0, CORE), (2, 60, CORE)], [1, 1]),
        ([(1, 0, CORE), (2, 61, CORE)], [1, 2]),
        # A group doesn't grow beyond its first minute, however many alerts link on.
        ([(1, 0, CORE), (2, 40, CORE), (3, 80, CORE)], [1, 1, 3]),
        # Other services stay apart, unless a dependency's breaker links them.
        ([(1, 0, CORE), (2, 0, ORACLE)], [1, 2]),
        ([(1, 0, CORE), (2, 0, ORACLE), (3, 0, BREAKER)], [1, 1, 1]),
        ([(1, 0, CORE), (2, 0, SYNAPSE), (3, 0, BREAKER)], [1, 2, 1]),
        # The switch that an SLO's alert trips.
        ([(1, 0, TRIPPING), (2, 10, SWITCH)], [1, 1]),
        ([(1, 0, ORACLE), (2, 10, SWITCH)], [1, 2]),
        # Services of a dependency that was just overridden share the change.
        (
            [
                (1, 0, links("core", changed=OVERRIDE)),
                (2, 9, links("synapse", changed=OVERRIDE)),
                (3, 9, links("oracle", changed=OVERRIDE)),
            ],
            [1, 1, 3],
        ),
        # Without service, switch or change, nothing links.
        ([(1, 0, links()), (2, 0, links())], [1, 2]),
    ],
)
def test_alerts_of_one_cause_form_a_group(alerts, groups):
    rows = [GroupableAlert(id, AT + after * SECOND, found) for id, after, found in alerts]

    assigned = assign_groups(rows)

    assert [assigned[row.id] for row in rows] == groups
    assert assign_groups(reversed(rows)) == assigned


def test_later_alert_joins_the_oldest_group_and_leaves_the_others_alone():
    rows = [
        GroupableAlert(1, AT, CORE, group=1),
        GroupableAlert(2, AT, ORACLE, group=2),
        GroupableAlert(3, AT + 10 * SECOND, BREAKER),
        GroupableAlert(4, AT + 10 * SECOND, ORACLE),
    ]

    assert assign_groups(rows) == {3: 1, 4: 1}
