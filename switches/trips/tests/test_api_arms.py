"""The API of arms: a mismatch trips the experiment, invalid counts are refused."""

import pytest

from switches.models import Trip

pytestmark = pytest.mark.django_db
ARMS = "/experiments/ranking/arms"
SPLIT = {"control": {"expected": 0.5, "count": 1000}, "b": {"expected": 0.5, "count": 1300}}


def test_mismatch_stops_the_experiment(machine):
    response = machine.post(ARMS, {"arms": SPLIT, "alpha": 0.001})

    body = response.json()
    assert response.status_code == 200
    assert (body["verdict"], body["srm"], body["tripped"]) == ("mismatch", True, True)
    assert body["degrees_of_freedom"] == 1
    assert body["chi_square"] == pytest.approx(39.1304347826087)
    assert body["p_value"] == pytest.approx(3.96416e-10, rel=1e-5)
    assert body["arms"]["control"] == {"count": 1000, "share": 0.5, "expected": 1150.0}
    assert body["switch"]["id"] == "experiment:ranking"
    assert body["switch"]["state"] == "engaged"
    trip = Trip.objects.get()
    assert (trip.source, trip.fingerprint, trip.policy.trigger) == ("srm", "srm:ranking", "srm")
    assert trip.evidence["p_value"] == body["p_value"]


def test_counts_that_fit_and_small_ones_stop_nothing(machine):
    fits = {"a": {"expected": 1, "count": 1000}, "b": {"expected": 2, "count": 2010}}
    few = {"a": {"expected": 1, "count": 0}, "b": {"expected": 1, "count": 7}}

    bodies = [machine.post(ARMS, {"arms": arms}).json() for arms in (fits, few)]

    assert [body["verdict"] for body in bodies] == ["ok", "insufficient"]
    assert [body["tripped"] for body in bodies] == [False, False]
    assert not Trip.objects.exists()


def test_counts_that_fit_again_resolve_the_mismatch(machine):
    machine.post(ARMS, {"arms": SPLIT})
    fits = {"control": {"expected": 0.5, "count": 5000}, "b": {"expected": 0.5, "count": 5010}}

    body = machine.post(ARMS, {"arms": fits}).json()

    assert "stays engaged" in body["why"]
    assert Trip.objects.get().resolved_at is not None


@pytest.mark.parametrize(
    "arms",
    [
        None,
        [],
        {},
        {"only": {"expected": 1, "count": 10}},
        {"a": {"expected": 0.5, "count": 10}, "b": {"expected": 0.4, "count": 10}},
        {"a": {"expected": 1, "count": 10}, "b": {"expected": 0, "count": 10}},
        {"a": {"expected": 1, "count": 10}, "b": {"expected": -1, "count": 10}},
        {"a": {"expected": 1, "count": 10}, "b": {"expected": True, "count": 10}},
        {"a": {"expected": 1, "count": 10}, "b": {"expected": "1", "count": 10}},
        {"a": {"expected": 1, "count": 10}, "b": {"expected": 1, "count": -1}},
        {"a": {"expected": 1, "count": 10}, "b": {"expected": 1, "count": 1.0}},
        {"a": {"expected": 1, "count": 10}, "b": {"expected": 1, "count": True}},
        {"a": {"expected": 1, "count": 10}, "b": {"expected": 1, "count": 10**15 + 1}},
        {"a": {"expected": 1, "count": 10}, "b": {"expected": 1, "count": 10**30}},
        {"a": {"expected": 1, "count": 10}, "b": {"expected": 1}},
        {"a": {"expected": 1, "count": 10}, "b": 5},
        {"a": {"expected": 1, "count": 10}, " ": {"expected": 1, "count": 10}},
        {f"arm{n}": {"expected": 1, "count": 10} for n in range(101)},
    ],
)
def test_arms_that_make_no_sense_are_400(machine, arms):
    response = machine.post(ARMS, {"arms": arms})

    assert response.status_code == 400
    assert any(name.startswith("arms") for name in response.json()["errors"])


@pytest.mark.parametrize("alpha", [0, 1, -0.1, "0.01", True, 10])
def test_alpha_is_a_probability(machine, alpha):
    assert machine.post(ARMS, {"arms": SPLIT, "alpha": alpha}).status_code == 400


@pytest.mark.parametrize("expires_in", ["soon", "permanent", ""])
def test_expiry_is_checked_although_the_counts_fit(machine, expires_in):
    fits = {"a": {"expected": 1, "count": 1000}, "b": {"expected": 1, "count": 1000}}

    response = machine.post(ARMS, {"arms": fits, "expires_in": expires_in})

    assert response.status_code == 400
    assert set(response.json()["errors"]) == {"expires_in"}


def test_rare_arm_that_got_a_third_stops_the_experiment(machine):
    rare = {"a": {"expected": 0.999, "count": 3000}, "b": {"expected": 0.001, "count": 1500}}

    body = machine.post(ARMS, {"arms": rare}).json()

    assert (body["verdict"], body["test"], body["tripped"]) == ("mismatch", "binomial", True)
    assert "binomial, p" in Trip.objects.get().reason
