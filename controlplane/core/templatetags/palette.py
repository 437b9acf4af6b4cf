"""The commands that have keys: the list of shortcuts, where the script reads what leads where."""

from django import template

from controlplane.core.palette import registry as sources
from controlplane.core.palette import search as finding
from controlplane.core.palette.registry import Command

register = template.Library()


@register.simple_tag(takes_context=True)
def taught(context: template.Context) -> list[Command]:
    """What this person may do by keys, those of one key first."""
    user = context["user"]
    if not user.is_authenticated:
        return []
    found = [one for one in sources.every_command() if one.keys and finding.allowed(one, user)]
    return sorted(found, key=lambda one: len(one.keys))
