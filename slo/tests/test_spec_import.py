"""Documents of other tools over HTTP and from the server's shell."""

import json
import re
from io import StringIO

import pytest
import yaml
from django.core.management import CommandError, call_command

from controlplane.core.audit.models import AuditEntry
from controlplane.core.http.tests.callers import as_role
from slo.models import Slo
from switches.tests.browsers import browser_as, page, text

from .test_openslo_structures import SLICES
from .test_sloth_and_pyrra import PYRRA, SERVER, SLOTH
from .test_views_edit import as_it_stands

pytestmark = pytest.mark.django_db


def run_import(*arguments):
    out = StringIO()
    call_command("slo", "import", *arguments, stdout=out)
    return out.getvalue().splitlines()


def write_files(folder, **texts):
    for name, content in texts.items():
        (folder / name).write_text(content)
    return [str(folder / name) for name in texts]


def test_command_creates_the_slos_of_all_files_and_says_what_was_ignored(tmp_path):
    files = write_files(tmp_path, a=SLOTH, b=PYRRA, c=SLICES)

    lines = run_import(*files, "--prometheus-url", SERVER)

    assert lines[:4] == [
        "login: created",
        "login-contract: created",
        "search-errors: created",
        "shop-orders: created",
    ]
    assert all(line.startswith("remark: ") for line in lines[4:])
    assert Slo.objects.get(name="login").slice_target is not None
    assert Slo.objects.get(name="shop-orders").metadata["labels"] == {
        "owner": "team-shop",
        "tier": "1",
    }
    assert AuditEntry.objects.filter(action="slo.created").count() == 4


def test_command_changes_nothing_on_a_dry_run_or_the_second_time(tmp_path):
    files = write_files(tmp_path, a=PYRRA)

    assert run_import(*files, "--dry-run")[0] == "search-errors: would be created"
    assert not Slo.objects.exists()
    run_import(*files)
    assert run_import(*files)[0] == "search-errors: unchanged"


def test_command_names_the_field_that_does_not_fit(tmp_path):
    files = write_files(tmp_path, a=SLOTH.replace("99.5", "995"))

    with pytest.raises(CommandError, match=r"documents\.0\.slos\.0\.objective: Must be a perc"):
        run_import(*files)


@pytest.mark.parametrize("content_type", ["application/yaml", "application/json"])
def test_sloth_document_is_imported_over_http(content_type):
    is_yaml = content_type == "application/yaml"
    body = SLOTH if is_yaml else json.dumps(yaml.safe_load(SLOTH))

    answer = as_role("admin").send("post", "/openslo/", body, content_type)

    assert answer.status_code == 200, answer.json()
    assert answer.json()["slos"] == [{"name": "shop-orders", "outcome": "created"}]
    assert any("No Prometheus URL" in each for each in answer.json()["remarks"])


def test_form_changes_the_slice_target_and_keeps_the_imported_names(tmp_path):
    run_import(*write_files(tmp_path, a=SLICES))
    slo = Slo.objects.get(name="login")
    metadata = slo.metadata
    sent = as_it_stands(slo, slice_target="98.5", do="save", reason="agreed with the shop, CHG-9")

    admin = browser_as("admin")

    shown = page(admin.get("/slos/login/edit/"))
    response = admin.post("/slos/login/edit/", sent)

    assert re.search(r'name="slice_target"\s+value="99"', shown)
    assert response.status_code == 302
    slo.refresh_from_db()
    assert (str(slo.slice_target), slo.metadata) == ("0.98500000", metadata)


def test_page_says_what_is_counted(tmp_path):
    run_import(*write_files(tmp_path, a=SLICES))

    shown = text(page(browser_as("viewer").get("/slos/login/")))

    assert "minutes in which at least 99 % of events are good" in shown
    assert "0.5 % of minutes" in shown
    assert "labels: team=identity, tier=one two" in shown
