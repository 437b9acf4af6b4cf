"""Names in the boxes of the map stay within them."""

import pytest

from breakers.map.box_texts import NAME_WIDTH, estimate_width, wrap_name


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("core", ("core", "")),
        ("EventLog worker", ("EventLog worker", "")),
        ("PostgreSQL (primary)", ("PostgreSQL", "(primary)")),
        ("postgresql-replica", ("postgresql-", "replica")),
        ("recommendation_service", ("recommendatio…", "")),
        ("EventLog worker for warehouses", ("EventLog worker", "for warehouses")),
        ("WWWWWWWWWWWWWWW", ("WWWWWWWW…", "")),
        ("결제대행서비스모음집", ("결제대행서비스모…", "")),
        ("", ("", "")),
    ],
)
def test_name_is_wrapped_at_spaces_and_hyphens_and_cut_at_the_width(name, lines):
    assert wrap_name(name) == lines
    assert all(estimate_width(line) <= NAME_WIDTH for line in lines)
