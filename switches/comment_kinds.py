"""Comments on episodes, which the page of their switch shows."""

from controlplane.core.comments.services import COMMENT_KINDS, CommentedObject, CommentKind
from controlplane.core.errors import NotFound
from switches.models import Episode

KIND = "episode"
MAX_DIGITS = 18


def find_episode(key: str) -> CommentedObject:
    is_number = key.isascii() and key.isdigit() and len(key) <= MAX_DIGITS
    episode = Episode.objects.filter(pk=key).first() if is_number else None
    if episode is None:
        raise NotFound(f"There is no episode {key}.")
    scope, _, name = episode.switch_id.partition(":")
    path = f"/switches/{scope}/{name}/"
    switch = episode.switch_id
    return CommentedObject(switch, path, switch, "switches", switch, resource=switch)


COMMENT_KINDS.register(CommentKind(KIND, "switches:write", find_episode))
