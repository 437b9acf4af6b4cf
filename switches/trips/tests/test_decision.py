"""Decisions on requests: policies, repeats, people's releases and limits."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switches.trips import decision
from switches.trips.decision import (
    ASKED,
    DUPLICATE,
    ENGAGED,
    REFUSED,
    TRIPPED,
    EarlierTrip,
    OpenEpisode,
    PolicyRow,
    ReleaseByHand,
    TripHistory,
    first_policy,
)
from switches.trips.default_policies import default_policies
from switches.trips.tests.requests import NOON, noon_plus

TABLE = [
    PolicyRow(row["trigger"], row["sources"], row["scopes"], row["gate"], 10)
    for row in default_policies()
]
AUTOMATIC = PolicyRow("outage", ["*"], ["segment", "feature"], "automatic", 10)
PERSON = PolicyRow("leak", ["leak*"], ["segment"], "person", 10)


def decide(policy=AUTOMATIC, switch="segment:finance", now=NOON, **history):
    return decision.decide(
        switch=switch, source="monitor", policy=policy, history=TripHistory(**history), now=now
    )


@pytest.mark.parametrize(
    ("source", "scope", "trigger"),
    [
        ("srm", "experiment", "srm"),
        ("guardrail", "experiment", "srm"),
        ("openai-outage", "segment", "provider-outage"),
        ("openai-outage", "feature", "provider-outage"),
        ("leak-detector", "feature", "data-leak"),
        ("Data-Leak scan", "experiment", "data-leak"),
        ("policy-report", "segment", "policy-violation"),
        ("security", "global", "security-incident"),
        ("alertmanager:SecurityBreach", "segment", "security-incident"),
        ("alertmanager:ProviderDown", "segment", "provider-outage"),
        ("alertmanager:DataLeakSuspected", "feature", "data-leak"),
        ("alertmanager:PossibleLeak", "segment", "data-leak"),
        ("data_leak", "experiment", "data-leak"),
        ("DATA.LEAK", "segment", "data-leak"),
        ("CustomerDataExposed", "feature", "data-leak"),
        ("IncidentSecurity", "segment", "security-incident"),
        ("incident-se_cu.rity", "segment", "security-incident"),
        ("ReportedPolicyViolation", "feature", "policy-violation"),
        ("reported-policy-violation", "feature", "policy-violation"),
        ("monitor", "global", None),
    ],
)
def test_default_table_is_that_of_the_source_document(source, scope, trigger):
    found = first_policy(TABLE, source, scope)

    assert (found.trigger if found else None) == trigger


def test_first_row_by_position_decides():
    person, automatic = PERSON, PolicyRow("all", ["*"], ["segment"], "automatic", 5)

    assert first_policy([person, automatic], "leak-scan", "segment") == person
    assert first_policy([automatic, person], "leak-scan", "segment") == automatic


@pytest.mark.parametrize(
    ("pattern", "source", "matches"),
    [
        ("Data-Leak*", "data_leak.scan", True),
        ("dataleak", "Data Leak", True),
        ("leak[1]", "leak1", False),
        ("leak[1]", "leak[1]", True),
        ("a*c", "abd", False),
    ],
)
def test_signs_between_words_do_not_matter_in_patterns(pattern, source, matches):
    row = PolicyRow("row", [pattern], ["segment"], "person", 1)

    assert (first_policy([row], source, "segment") is not None) is matches


def test_without_a_policy_it_is_refused():
    found = decide(policy=None)

    assert found.outcome == REFUSED
    assert "No policy" in found.why


def test_policy_that_allows_it_trips():
    assert decide().outcome == TRIPPED


def test_gate_for_people_asks_a_person():
    found = decide(policy=PERSON)

    assert found.outcome == ASKED
    assert found.escalate == "person:leak:segment:finance"


def test_global_is_never_automatic_whatever_the_table_says():
    everything = PolicyRow("all", ["*"], ["global"], "automatic", 1000)

    found = decide(policy=everything, switch="global:all")

    assert found.outcome == ASKED
    assert "Only people engage" in found.why


def test_engaged_switch_is_not_engaged_again():
    found = decide(open_episode=OpenEpisode("user:kim", noon_plus(hours=-1), "INC-4411"))

    assert found.outcome == ENGAGED
    assert "user:kim" in found.why
    assert "INC-4411" in found.why


def test_ramping_switch_is_stopped():
    episode = OpenEpisode("user:kim", NOON, "INC-4411", ramping=True)

    assert decide(open_episode=episode).outcome == TRIPPED


@pytest.mark.parametrize("firing", [True, False])
def test_same_alert_while_its_episode_is_open_is_a_repeat(firing):
    found = decide(
        earlier=EarlierTrip(TRIPPED, noon_plus(hours=-1), firing=firing, episode_open=True),
        open_episode=OpenEpisode("token:ci", noon_plus(hours=-1), "p95 high"),
    )

    assert found.outcome == DUPLICATE


def test_same_alert_after_its_episode_expired_waits_until_it_has_resolved():
    found = decide(earlier=EarlierTrip(TRIPPED, noon_plus(hours=-5)))
    again = decide(earlier=EarlierTrip(TRIPPED, noon_plus(hours=-5), firing=False))

    assert found.outcome == DUPLICATE
    assert "not resolved" in found.why
    assert again.outcome == TRIPPED


def test_what_a_person_let_flow_is_not_stopped_by_the_same_alert_before_it_resolved():
    for hours in (0.1, 2, 200):
        found = decide(
            release=ReleaseByHand("user:kim", noon_plus(hours=-hours), resolved=False),
            earlier=EarlierTrip(TRIPPED, noon_plus(hours=-hours - 1)),
        )

        assert found.outcome == REFUSED
        assert "user:kim released segment:finance" in found.why
        assert not found.escalate


@pytest.mark.parametrize(("minutes", "outcome"), [(0, REFUSED), (59, REFUSED), (60, TRIPPED)])
def test_nor_within_an_hour_although_it_resolved(minutes, outcome):
    found = decide(
        release=ReleaseByHand("user:kim", noon_plus(minutes=-minutes), resolved=True),
        earlier=EarlierTrip(TRIPPED, noon_plus(hours=-3), firing=False),
    )

    assert found.outcome == outcome


def test_a_persons_word_counts_before_another_person_is_asked():
    found = decide(
        policy=PERSON, release=ReleaseByHand("user:kim", noon_plus(minutes=-5), resolved=False)
    )

    assert found.outcome == REFUSED


def test_person_is_asked_once_until_the_alert_has_resolved():
    earlier = EarlierTrip(ASKED, noon_plus(hours=-5))

    assert decide(policy=PERSON, earlier=earlier).outcome == DUPLICATE
    assert decide(policy=PERSON, earlier=EarlierTrip(ASKED, NOON, firing=False)).outcome == ASKED


def test_what_was_refused_is_judged_anew_at_each_repeat():
    assert decide(earlier=EarlierTrip(REFUSED, noon_plus(minutes=-5))).outcome == TRIPPED


@pytest.mark.parametrize(
    ("minutes_ago", "outcome"),
    [
        ((5, 10), TRIPPED),
        ((5, 10, 15), REFUSED),
        ((0, 0, 0), REFUSED),
        ((59, 80, 100), REFUSED),
        ((60, 80, 100), TRIPPED),
        ((5, 30, 66), TRIPPED),
        ((5, 30, 65), REFUSED),
    ],
)
def test_third_trip_within_an_hour_locks_the_switch_for_an_hour(minutes_ago, outcome):
    found = decide(trips=[noon_plus(minutes=-minutes) for minutes in minutes_ago])

    assert found.outcome == outcome
    assert bool(found.escalate) == (outcome == REFUSED)


def test_spent_budget_is_a_persons_decision():
    assert decide(spent=9).outcome == TRIPPED
    found = decide(spent=10)
    assert found.outcome == REFUSED
    assert found.escalate == "budget:outage"


MOMENTS = st.timedeltas(timedelta(days=-3), timedelta(seconds=0)).map(lambda ago: NOON + ago)
OUTCOMES = st.sampled_from([TRIPPED, ENGAGED, ASKED, REFUSED])
HISTORIES = st.builds(
    TripHistory,
    earlier=st.none() | st.builds(EarlierTrip, OUTCOMES, MOMENTS, st.booleans(), st.booleans()),
    open_episode=st.none()
    | st.builds(OpenEpisode, st.just("user:kim"), MOMENTS, st.text(), st.booleans()),
    release=st.none() | st.builds(ReleaseByHand, st.just("user:kim"), MOMENTS, st.booleans()),
    trips=st.lists(MOMENTS, max_size=5),
    spent=st.integers(0, 20),
)
POLICY = st.none() | st.builds(
    PolicyRow,
    st.just("any"),
    st.just(["*"]),
    st.just(["global", "segment", "feature", "experiment"]),
    st.sampled_from(["automatic", "person"]),
    st.integers(1, 20),
)


@given(POLICY, HISTORIES, st.sampled_from(["global:all", "segment:a", "experiment:a"]))
def test_a_machine_stops_only_what_nothing_speaks_against(policy, history, switch):
    found = decision.decide(
        switch=switch, source="monitor", policy=policy, history=history, now=NOON
    )

    assert found.why
    if found.outcome != TRIPPED:
        return
    assert switch != "global:all"
    assert policy.gate == "automatic"
    assert history.spent < policy.budget_per_hour
    assert history.open_episode is None or history.open_episode.ramping
    release = history.release
    assert release is None or (release.resolved and NOON - release.at >= decision.MIN_RELEASE_HOLD)
    assert sum(NOON - at < timedelta(minutes=30) for at in history.trips) < decision.FLAP_TRIPS
