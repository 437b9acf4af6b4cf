from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("breakers", "0003_dead_letters")]

    operations = [
        migrations.AddIndex(
            model_name="departure",
            index=models.Index(
                fields=["stream", "new_id"],
                condition=Q(state__in=["restoring", "restored"]),
                name="departure_restored",
            ),
        ),
    ]
