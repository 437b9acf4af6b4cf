"""Template tag for the contacts of a team."""

from datetime import datetime

from django import template

from controlplane.notify.targets import contact_services
from controlplane.notify.targets.contact_services import TeamContacts

register = template.Library()


@register.simple_tag
def team_contacts(slug: str, now: datetime) -> TeamContacts:
    return contact_services.describe_contacts(slug, now)
