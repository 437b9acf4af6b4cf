"""The table of paths is complete: each path resolves to its route."""

from django.urls import resolve

from controlplane.tests.security import urls


def test_every_address_leads_to_the_route_it_was_made_of():
    astray = {
        place.route: found.route
        for place in urls.places()
        if (found := resolve(place.path)).route.removeprefix("^") != place.route
    }

    assert astray == {}


def test_there_are_as_many_addresses_as_there_are_rooms():
    prefixes = {place.route.partition("/")[0] for place in urls.places()}

    assert prefixes >= {"api", "admin", "health", "switches", "breakers", "slos", "people"}
    assert len(urls.places()) > 500
