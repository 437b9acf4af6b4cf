"""Whatever a service asks for, the client does not grow."""

from switchgear.sli import MAX_NAMES
from tests.fake_console import console
from tests.reporting.program_runner import environment, run

KEYS = 100_000


def test_ever_other_keys_fill_no_memory(tmp_path):
    with console() as there:
        said = run("many_keys", str(KEYS), given=environment(there, tmp_path))

    grown, dropped = said.split()
    assert int(grown) < 20
    # A thousand switches are counted, `global:all` among them.
    assert int(dropped) >= KEYS - 999
    assert len(there.reports[-1]["checks"]) == 1000
    assert len(there.reports[-1]["sli"]) == MAX_NAMES
