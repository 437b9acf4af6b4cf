"""A database that loses its newest versions, as a promoted replica that was behind has."""

from django.db import connection, transaction

from switches.models import Episode, Publication, PublishedVersion

EARLIER_TIMELINE = "UPDATE switches_publishedversion SET timeline = switches_timeline() - 1"


@transaction.atomic
def lose_versions_after(version: int, *, promoted: bool = True) -> None:
    """Go back to `version`: later engagements, releases and records are gone."""
    lost = PublishedVersion.objects.filter(version__gt=version)
    kept = PublishedVersion.objects.filter(version=version).latest("pk")
    Episode.objects.filter(engaged_version__gt=version).delete()
    Publication.objects.update(version=version, published_at=kept.published_at)
    lost.delete()
    PublishedVersion.objects.filter(version=version).exclude(pk=kept.pk).delete()
    if promoted:
        with connection.cursor() as cursor:
            cursor.execute(EARLIER_TIMELINE)
