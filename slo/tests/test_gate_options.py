"""Tests of the list of SLOs that gates can name."""

import pytest

from slo.gate_options import list_slos
from slo.tests.factories import counted, slo
from slo.tests.fake_metric import NOW

pytestmark = pytest.mark.django_db


def test_slos_with_data_come_before_those_without_any():
    slo("canvas-availability")
    for name, first in (("core-availability", 200), ("worker-availability", 100)):
        counted(slo(name), [(first, 0, 0), (first + 1, 9, 10)])

    options = [str(one) for one in list_slos(NOW, 5)]

    assert options == [
        "core-availability · Unknown",
        "worker-availability · Unknown",
        "canvas-availability · No data",
    ]
    assert [one.value for one in list_slos(NOW, 1)] == ["core-availability"]
