"""User texts never become an element or an executable link on any page."""

from html import unescape

import pytest

from breakers.dead_letters.tests.heaps import heap
from controlplane.tests.e2e import pages
from controlplane.tests.security import markup, urls
from controlplane.tests.security.callers import browser_of, undone
from switches.tests.browsers import Tags

WEAR = "document.querySelectorAll('[data-pwned]').length"


def looked_at(user):
    """Yield the HTML of each linked page, and of each dialog and partial with a path."""
    seen = set()
    for _name, path, html in pages.followed(user):
        seen.add(path)
        yield path, html
    client = browser_of(user)
    for path in sorted({place.path for place in urls.places() if place.is_page} - seen):
        with undone():
            response = client.get(path)
        if response.status_code == 200 and "html" in response.headers["Content-Type"]:
            yield path, response.content.decode()
        client = browser_of(user) if path == "/sign-out/" else client


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.django_db
def test_no_text_becomes_an_element_or_a_link_that_runs(settings):
    wrong, count = {}, 0
    with heap(settings) as letters:
        for path, html in looked_at(markup.build(letters)):
            count += markup.MARK in unescape(html)
            for tag, attributes in Tags(html).found:
                links = [attributes.get(name) or "" for name in ("href", "src", "action")]
                runs = any(
                    one.strip().lower().startswith(("javascript:", "data:text")) for one in links
                )
                if (
                    markup.MARK in attributes
                    or runs
                    or any(name.startswith("on") for name in attributes)
                ):
                    wrong[path] = (tag, attributes)

    assert not wrong, wrong
    assert count > 15, "the texts have to be on the pages for this to say anything"


@pytest.mark.e2e
@pytest.mark.timeout(900)
def test_a_browser_makes_nothing_of_them_either(desks, transactional_db, settings):
    """Also where a script writes into the page: sockets, plots, the dialog, the palette."""
    with heap(settings) as letters:
        ada = markup.build(letters)
        desk = desks.open_desk(ada)
        worn = {}
        for path in sorted({paths[0] for paths in pages.find_pages(ada).values()}):
            page = desk.open(path)
            if page.evaluate(WEAR) or page.title() == "pwned":
                worn[path] = page.title()

    assert worn == {}
