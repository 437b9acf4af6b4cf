"""The API answers what its OpenAPI document says, whatever it is asked: every operation of it.

By people's browsers and by programs, with requests that the document allows and some that it does
not. The cases are the same each time; `make faults` tries more of them.
"""

from collections import Counter
from itertools import cycle

import orjson
import pytest
import schemathesis

from breakers.dead_letters.tests.heaps import heap
from breakers.tests.house import dependency
from controlplane.accounts.models.people import User
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person, token_text
from controlplane.core.signatures import SigningKey
from controlplane.dataplane.tests.conftest import idle  # noqa: F401 - a fixture
from controlplane.dataplane.tests.lines import wait_until
from controlplane.openapi.document import get_representation
from controlplane.tests.security import callers, generated_requests, markup
from controlplane.tests.security.existing_objects import arguments
from switches.tests.browsers import engaged

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(900)]
EXAMPLES, MANY_EXAMPLES = 2, 10
"""Number of good requests of each operation: half by a browser, half by a program."""
# Served by the data plane alone, which is asked below.
PLANE = {"key": ["segment:finance"]}
NOT_DJANGO = (
    "/ofrep/",
    "/api/v1/report",
    "/api/v1/config",
    "/api/v1/snapshot/stream",
    "/api/v1/relay/batch",
    "/api/v1/relay/lost-version",
    "/api/v1/relay/stream",
)


@pytest.fixture(scope="module")
def operations():
    document = orjson.loads(get_representation("json").plain)
    return [one.ok() for one in schemathesis.openapi.from_dict(document).get_all_operations()]


def is_of_django(operation):
    return not operation.path.startswith(NOT_DJANGO[:1]) and operation.path not in NOT_DJANGO


@pytest.fixture
def house(settings):
    """An installation with objects in every table.

    Yields the browser of an admin and a token of theirs with every scope, and the path arguments of
    existing objects.
    """
    with heap(settings) as letters:
        ada = markup.build(letters)
        program = callers.program(*callers.ALL_SCOPES, owner=User.objects.get(pk=ada.pk))
        yield (
            [
                generated_requests.make_client_sender(callers.browser_of(ada)),
                generated_requests.make_client_sender(program),
            ],
            arguments(letters),
        )


@pytest.mark.parametrize(
    "examples",
    [
        pytest.param(EXAMPLES, marks=pytest.mark.exhaustive),
        pytest.param(MANY_EXAMPLES, marks=pytest.mark.faults),
    ],
)
def test_every_answer_is_what_the_document_says(operations, house, examples):
    sends, there = house
    turn = cycle(sends)
    wrong, statuses, well = {}, Counter(), set()
    for operation in filter(is_of_django, operations):
        for request, answer, complaint in generated_requests.generate_requests(
            operation, lambda request: next(turn)(request), examples, there
        ):
            statuses[answer.status_code] += 1
            if answer.status_code < 300:
                well.add(operation.label)
            if complaint:
                what = (operation.label, answer.status_code)
                wrong.setdefault(what, (complaint, request.url, answer.content[:300]))

    assert not wrong, "\n".join(f"{what}: {how}" for what, how in wrong.items())
    assert len(well) > 60, "too few went well for this to say anything"
    assert statuses[400] > 60, "too few went wrong"


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_every_answer_of_the_data_plane_is_what_the_document_says(operations, idle):  # noqa: F811
    ada = person("admin", "ada")
    token = {"authorization": f"Bearer {token_text(ada, callers.ALL_SCOPES)}"}
    dependency("core->oracle", db_now())
    engaged("segment:finance", by=ada)
    idle.start()
    wait_until(lambda: idle.state.copy is not None and idle.state.tokens, 20)
    idle.state.install_keys([SigningKey.generate()], ())  # Else relays are answered 503.
    send = generated_requests.by_plane(idle.plane, idle.loop, token)
    wrong, statuses = {}, Counter()
    for operation in operations:
        if is_of_django(operation):
            continue
        for request, answer, complaint in generated_requests.generate_requests(
            operation, send, 12, PLANE
        ):
            statuses[answer.status_code] += 1
            if complaint:
                what = (operation.label, answer.status_code)
                wrong.setdefault(what, (complaint, request.url, answer.content[:300]))

    assert not wrong, "\n".join(f"{what}: {how}" for what, how in wrong.items())
    assert statuses.keys() >= {200, 400, 404}
