"""Layout of charts: days to come are empty, and long labels need a table."""

from switches.report.renderer import layout_bars


def test_day_to_come_has_neither_bar_nor_number():
    monday, tuesday = layout_bars([("Mon 23", 0.0), ("Tue 24", None)])["bars"]

    assert (monday["value"], monday["height"]) == ("0", 0)
    assert (tuesday["value"], tuesday["height"]) == ("", 0)


def test_labels_that_are_too_long_for_bars_do_not_fit():
    assert layout_bars([("Mon 23", 1.0)])["fits"]
    assert not layout_bars([("synapse.UnreadableAmount", 1.0)])["fits"]
