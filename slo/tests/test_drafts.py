"""The form of an SLO: it sends the document the API would be sent."""

import pytest
from django.http import QueryDict

from slo.objectives import documents
from slo.views import drafts
from slo.views.drafts import Draft

ALL_OF_IT = {
    "service": "core",
    "kind": "latency",
    "target": 0.995,
    "window_days": 28,
    "threshold_ms": 2500,
    "source": {"type": "prometheus", "url": "http://prom:9090", "good": "g", "total": "t"},
    "rules": [{"long": "1h", "short": "5m", "burn_rate": 14.4, "severity": "page"}],
    "min_events": 50,
    "actions": [
        {"on": "page", "do": "trip", "switch": "experiment:x", "expires_in": "2h"},
        {"on": "any", "do": "hold_ramps", "on_unknown": "act"},
    ],
    "description": "People wait for it.",
    "owner": "team-core",
    "runbook_url": "https://runbooks.example/core",
}


def sent_fields(draft: Draft) -> Draft:
    """Return what a browser would send of this form."""
    data = QueryDict(mutable=True)
    for name, text in draft.hidden():
        data[name] = text
    return Draft.from_post(data)


def test_form_that_nobody_touched_says_what_stood_there():
    document = documents.validate("core-p99", ALL_OF_IT)
    draft = Draft.from_document({**document, "name": "core-p99"})

    sent = sent_fields(draft)

    assert sent.text("name") == "core-p99"
    assert documents.validate("core-p99", sent.document()) == document


@pytest.mark.parametrize(
    ("text", "share"),
    [("99.9", 0.999), ("99.9 %", 0.999), (" 95", 0.95), ("0.5", 0.005), ("much", "much")],
)
def test_target_is_typed_in_percent(text, share):
    assert Draft({"target": text}).document()["target"] == share


def test_what_is_no_number_is_refused_where_numbers_are_read():
    draft = Draft({"name": "a", "kind": "availability", "target": "99.9", "window_days": "month"})

    with pytest.raises(documents.InvalidInput) as refused:
        documents.validate("a", draft.document())

    assert drafts.errors_about("window_days", refused.value.errors)


def test_rules_come_and_go_by_their_buttons():
    rule = {"long": "1h", "short": "5m", "burn_rate": "14", "severity": "page"}
    draft = Draft({}, (rule, {**rule, "long": "6h"}))

    assert len(draft.apply_button("add-rule").rules) == 3
    assert draft.apply_button("remove-rule-0").rules == ({**rule, "long": "6h"},)
    assert draft.apply_button("remove-rule-7").rules == draft.rules
    assert len(draft.apply_button("add-action").actions) == 1


def test_rows_are_never_more_than_the_form_may_have():
    draft = Draft({})
    for _ in range(drafts.MAX_ROWS + 5):
        draft = draft.apply_button("add-rule")

    assert len(draft.rules) == drafts.MAX_ROWS


def test_complaints_stand_beside_their_rows():
    errors = {"rules.1.long": ["a"], "rules.1.burn_rate": ["b"], "rules.1": ["c"], "odd": ["d"]}
    texts = [{"long": "", "burn_rate": ""}] * 2

    first, second = drafts.make_rows("rules", texts, errors)

    assert not any(first.errors.values())
    assert second.errors == {"long": ["a"], "burn_rate": ["b"]}
    assert second.other_errors == ["c"]
    assert drafts.unplaced_errors(errors) == ["odd: d"]


def test_meaning_is_told_only_of_what_can_be_read():
    rule = {"long": "1h", "short": "5m", "burn_rate": "14", "severity": "page"}
    wrong = [{**rule, "long": "soon"}, {**rule, "burn_rate": "fast"}, {**rule, "burn_rate": "1e9"}]
    draft = Draft({"target": "99.9", "window_days": "30"}, (rule, *wrong))

    _, (first, *others) = drafts.describe_draft(draft)

    assert first is not None
    assert others == [None, None, None]
    assert drafts.describe_draft(Draft({"target": "100"}, (rule,))) == (None, [None])
