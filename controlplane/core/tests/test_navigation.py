"""The navigation marks the section of the page that the browser shows."""

import pytest

from controlplane.core.templatetags.navigation import find_section


@pytest.mark.parametrize(
    ("path", "section"),
    [
        ("/", "switches"),
        ("/?state=overdue", "switches"),
        ("/switches/feature/nl2sql/", "switches"),
        ("/alerts/7/", "slos"),
        ("/slos/thresholds/", "slos"),
        ("/breakers/core/oracle/?calls=1h", "breakers"),
        ("/dead-letters/", "dead-letters"),
        ("/find/", "find"),
    ],
)
def test_path_belongs_to_a_section(path, section):
    assert find_section(path) == section
