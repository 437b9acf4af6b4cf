"""The sample configuration: named as such, cleared in one transaction, loaded again."""

import io

import pytest
from django.core.management import call_command

from breakers.models import Channel, Dependency, Registry, Service
from breakers.services import overrides, registry
from breakers.tests.registered import ADMIN, REASON, breaker, dependency, instance
from controlplane.accounts.models.people import User
from controlplane.core import provision
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.configuration import samples
from controlplane.core.configuration.models import SampleEntry
from controlplane.core.configuration.services import load_shipped
from controlplane.core.errors import Forbidden, InvalidInput
from controlplane.core.http.tests.callers import as_role, browser_of, person
from slo.models import Sli, Slo
from switches.ramps.tests import ramp_helpers
from switches.tests.browsers import DIALOG, browser_as, page, text

pytestmark = pytest.mark.django_db
WHY = "our own services are registered now"
SHIPPED = {"dependency": 21, "service": 19, "channel": 17, "SLO": 4}


@pytest.fixture(autouse=True)
def loaded():
    return load_shipped(actor=provision.ACTOR, now=db_now())


def clear(actor=provision.ACTOR):
    return samples.clear(reason=WHY, actor=actor, now=db_now())


def list_kept():
    return {item.name: item.kept for item in samples.list_items() if item.kept}


def test_everything_that_is_shipped_is_a_sample_and_goes():
    items = samples.list_items()
    assert {kind: sum(item.kind == kind for item in items) for kind in SHIPPED} == SHIPPED
    assert not list_kept()

    clear()

    assert not samples.list_items()
    assert not Dependency.objects.registered().exists()
    assert not Service.objects.exists()
    assert not Channel.objects.exists()
    assert not Slo.objects.present().exists()


def test_clearing_is_one_registry_version_and_audited_with_an_intact_trail():
    before = Registry.objects.get().version

    clear()

    assert Registry.objects.get().version == before + 1
    summary = AuditEntry.objects.get(action="samples.cleared")
    assert summary.reason == WHY
    assert "SLO core-availability" in summary.before
    assert AuditEntry.objects.filter(action="dependency.removed", reason=WHY).count() == 21
    assert AuditEntry.objects.filter(action="service.removed", reason=WHY).count() == 19
    assert AuditEntry.objects.filter(action="slo.removed", reason=WHY).count() == 4
    assert audit.verify().intact


def test_clearing_again_changes_nothing():
    clear()
    entries, version = AuditEntry.objects.count(), Registry.objects.get().version

    assert clear() == []

    assert (AuditEntry.objects.count(), Registry.objects.get().version) == (entries, version)


def test_what_is_in_use_or_changed_stays_and_is_no_sample_any_more():
    now = db_now()
    reported = registry.find_dependency("core", "oracle")
    breaker(reported, instance(now, "core/a1"))
    edited = registry.find_dependency("core", "vision")
    policy = {**edited.document, "timeout_ms": 1234}
    registry.put_dependency(caller="core", callee="vision", fields=policy, actor=ADMIN, now=now)
    overrides.set_override(
        caller="core", callee="weaver", mode="forced_open", expires_in="1h", reason=REASON,
        actor=ADMIN, now=now,
    )  # fmt: skip
    Sli.objects.filter(slo__name="core-availability").update(first=1, last=2)

    assert list_kept() == {
        "core->oracle": "its breakers are reported",
        "core->vision": "changed after it was loaded",
        "core->weaver": "an override is in force",
        "core": "its instances report",
        "oracle": "the dependency core->oracle names it",
        "vision": "the dependency core->vision names it",
        "weaver": "the dependency core->weaver names it",
        "core-availability": "it has data",
    }
    clear()

    names = {row.name for row in Dependency.objects.registered()}
    assert names == {"core->oracle", "core->vision", "core->weaver"}
    assert set(Service.objects.values_list("pk", flat=True)) == {
        "core", "oracle", "vision", "weaver",
    }  # fmt: skip
    assert [slo.name for slo in Slo.objects.present()] == ["core-availability"]
    assert not SampleEntry.objects.exists()


@pytest.mark.parametrize("switch", ["feature:chat", "global:all"])
def test_what_the_plan_of_a_running_or_requested_ramp_names_stays_until_it_ends(switch):
    gates = [
        {"type": "slo", "slo": "core-availability"},
        {"type": "samples", "slo": "core-availability"},
        {"type": "breaker", "dependency": "core->oracle"},
    ]
    plan = [{"percent": 5}, {"percent": 25, "gates": gates}, {"percent": 100}]
    now = db_now()
    ramp_helpers.engage(switch, now)
    ramp_helpers.release(switch, now, by=ramp_helpers.get_person(), plan=plan)

    assert list_kept() == {
        "core-availability": f"the ramp of {switch} names it",
        "core->oracle": f"the ramp of {switch} names it",
        "core": "the dependency core->oracle names it",
        "oracle": "the dependency core->oracle names it",
    }
    ramp_helpers.release(switch, now, mode="immediate")
    assert list_kept() == {}


def test_own_entries_are_no_samples_and_stay():
    dependency(db_now(), "checkout->payments")

    clear()

    assert [row.name for row in Dependency.objects.registered()] == ["checkout->payments"]


def test_loading_again_adds_what_is_missing_and_changes_nothing_else():
    now = db_now()
    edited = registry.find_dependency("core", "vision")
    policy = {**edited.document, "timeout_ms": 1234}
    registry.put_dependency(caller="core", callee="vision", fields=policy, actor=ADMIN, now=now)
    clear()

    loaded = samples.load(actor=provision.ACTOR, now=db_now())

    assert loaded.count("new") == sum(SHIPPED.values()) - 3, "core->vision, core and vision stayed"
    assert registry.find_dependency("core", "vision").document["timeout_ms"] == 1234
    assert set(list_kept()) == set(), "neither is a sample now"
    assert samples.load(actor=provision.ACTOR, now=db_now()).count("new") == 0


def test_start_after_clearing_loads_nothing():
    clear()

    provision.run_first_steps(db_now())

    assert not samples.list_items()
    assert not Slo.objects.present().exists()


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_only_admins_clear_and_load(role):
    actor = person(role).as_actor()
    with pytest.raises(Forbidden):
        clear(actor)
    with pytest.raises(Forbidden):
        samples.load(actor=actor, now=db_now())
    assert browser_of(User.objects.get()).get("/samples/clear/").status_code == 403
    assert len(samples.list_items()) == sum(SHIPPED.values())


def test_clearing_takes_a_reason():
    with pytest.raises(InvalidInput):
        samples.clear(reason=" ", actor=provision.ACTOR, now=db_now())
    assert len(samples.list_items()) == sum(SHIPPED.values())


def test_dialog_lists_what_goes_and_what_stays():
    breaker(registry.find_dependency("core", "oracle"), instance(db_now(), "core/a1"))
    browser = browser_as("admin")

    html = text(page(browser.get("/samples/clear/", headers=DIALOG)))

    assert "20 dependencies" in html
    assert "dependency core->oracle: its breakers are reported" in html.replace("&gt;", ">")
    refused = browser.post("/samples/clear/", {"reason": ""}, headers=DIALOG)
    assert refused.status_code == 422
    assert browser.post("/samples/clear/", {"reason": WHY}, headers=DIALOG).status_code == 204
    assert [row.name for row in Dependency.objects.registered()] == ["core->oracle"]


def test_boards_mark_samples_and_say_where_they_come_from():
    now = db_now()
    dependency(now, "checkout->payments")
    browser = browser_as("viewer")

    for path in ("/breakers/?state=unknown", "/slos/", "/breakers/infrastructure/"):
        html = page(browser.get(path))
        assert '<span class="tag">Sample</span>' in html, path
        assert "from the folder <code>config/</code>" in html, path
    assert '<span class="tag">Sample</span>' in page(browser.get("/breakers/core/oracle/"))
    assert '<span class="tag">Sample</span>' not in page(
        browser.get("/breakers/checkout/payments/")
    )


def test_api_lists_clears_and_loads():
    admin = as_role("admin")
    assert len(admin.get("/samples/").json()["items"]) == sum(SHIPPED.values())

    assert admin.post("/samples/clear", {"reason": WHY, "dry_run": True}).status_code == 200
    assert len(samples.list_items()) == sum(SHIPPED.values())
    assert admin.post("/samples/clear", {"reason": WHY}).status_code == 200
    assert admin.get("/samples/").json() == {"items": []}
    assert admin.post("/samples/load").json()["loaded"] == sum(SHIPPED.values())
    assert as_role("operator").post("/samples/clear", {"reason": WHY}).status_code == 403


def test_command_lists_clears_and_loads():
    def run(*arguments):
        out = io.StringIO()
        call_command("sample", *arguments, stdout=out)
        return out.getvalue()

    assert run("list").endswith("61 would be removed, 0 kept.\n")
    assert run("clear", "--reason", WHY).endswith("61 removed, 0 kept.\n")
    assert run("list") == "There is no sample configuration.\n"
    assert run("load") == "61 entries loaded.\n"
