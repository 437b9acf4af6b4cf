"""Create the tables of teams; their changes increment the revision of the credentials."""

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

TABLES = ("core_team", "core_membership", "core_ownership", "core_authorityrule")
TRIGGERS = "".join(
    f"""
    CREATE TRIGGER {table}_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table}
        FOR EACH STATEMENT EXECUTE FUNCTION core_credentials_changed();
    """
    for table in TABLES
)
WITHOUT_TRIGGERS = "".join(f"DROP TRIGGER {table}_changed ON {table};" for table in TABLES)
TRIGGER_OF_TOKENS = """
DROP TRIGGER core_token_changed ON core_token;
CREATE TRIGGER core_token_changed
    AFTER INSERT OR DELETE OR TRUNCATE
        OR UPDATE OF owner_id, prefix, digest, scopes, services, {added}expires_at, revoked_at
        ON core_token
    FOR EACH STATEMENT EXECUTE FUNCTION core_credentials_changed();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("core", "0035_counted_batches"),
    ]

    expands = "triggers of new tables, and one that also fires on columns that are new"
    operations = [
        migrations.CreateModel(
            name="DirectoryUser",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="directory",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("external_id", models.CharField(blank=True, max_length=255)),
                ("attributes", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField()),
                ("changed_at", models.DateTimeField()),
            ],
        ),
        migrations.AddField(
            model_name="escalation",
            name="resource",
            field=models.CharField(blank=True, db_default="", default="", max_length=250),
        ),
        migrations.AddField(
            model_name="token",
            name="only_owned",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="token",
            name="patterns",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=250),
                blank=True,
                db_default=[],
                default=list,
                size=None,
            ),
        ),
        migrations.AddField(
            model_name="token",
            name="replaces",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="replaced_by",
                to="core.token",
            ),
        ),
        migrations.AlterField(
            model_name="approval",
            name="kind",
            field=models.CharField(
                choices=[
                    ("release", "Release"),
                    ("permanent", "Permanent"),
                    ("purge", "Purge"),
                    ("ramp_gate", "Ramp Gate"),
                    ("rule_change", "Rule Change"),
                    ("break_glass_review", "Break Glass Review"),
                    ("grant", "Grant"),
                    ("authority_change", "Authority Change"),
                ],
                max_length=24,
            ),
        ),
        migrations.CreateModel(
            name="AuthorityRule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "action",
                    models.CharField(
                        choices=[
                            ("engage", "engage"),
                            ("extend", "extend"),
                            ("release", "release"),
                            ("release_at_once", "release_at_once"),
                            ("approve", "approve"),
                            ("override", "override"),
                            ("replay", "replay"),
                            ("purge", "purge"),
                            ("edit", "edit"),
                        ],
                        max_length=16,
                    ),
                ),
                ("kind", models.CharField(blank=True, max_length=12)),
                (
                    "relation",
                    models.CharField(
                        choices=[("anyone", "anyone"), ("owner", "owner"), ("root", "root")],
                        max_length=8,
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("viewer", "viewer"),
                            ("operator", "operator"),
                            ("approver", "approver"),
                            ("admin", "admin"),
                        ],
                        max_length=16,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("action", "kind"), name="authorityrule_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="DirectoryGroup",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=255, unique=True)),
                ("external_id", models.CharField(blank=True, max_length=255)),
                ("created_at", models.DateTimeField()),
                ("changed_at", models.DateTimeField()),
                (
                    "members",
                    models.ManyToManyField(
                        related_name="directory_groups", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Team",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "slug",
                    models.CharField(
                        max_length=40,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?"
                            )
                        ],
                    ),
                ),
                ("name", models.CharField(max_length=80)),
                ("description", models.CharField(blank=True, db_default="", max_length=300)),
                ("runbook_url", models.CharField(blank=True, db_default="", max_length=500)),
                ("member_group", models.CharField(blank=True, db_default="", max_length=255)),
                ("lead_group", models.CharField(blank=True, db_default="", max_length=255)),
                ("created_at", models.DateTimeField()),
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="children",
                        to="core.team",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Ownership",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("pattern", models.CharField(max_length=250, unique=True)),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="ownerships",
                        to="core.team",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="token",
            name="team",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="tokens",
                to="core.team",
            ),
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[("member", "Member"), ("lead", "Lead")],
                        default="member",
                        max_length=8,
                    ),
                ),
                (
                    "source",
                    models.CharField(
                        choices=[("hand", "Hand"), ("group", "Group")], default="hand", max_length=8
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to="core.team",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("team", "user"), name="membership_once"),
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ["member", "lead"])),
                        name="membership_role_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("source__in", ["hand", "group"])),
                        name="membership_source_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TeamContact",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("on_call", "On Call"),
                            ("channel", "Channel"),
                            ("escalation", "Escalation"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "target",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="team_contacts",
                        to="core.target",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="contacts",
                        to="core.team",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("team", "kind", "target"), name="team_contact_once"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "channel"), _negated=True),
                        fields=("team", "kind"),
                        name="team_contact_one_on_call_and_escalation",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["on_call", "channel", "escalation"])),
                        name="team_contact_kind_known",
                    ),
                ],
            },
        ),
        migrations.RunSQL(TRIGGERS, WITHOUT_TRIGGERS),
        migrations.RunSQL(
            TRIGGER_OF_TOKENS.format(added="team_id, patterns, only_owned, "),
            TRIGGER_OF_TOKENS.format(added=""),
        ),
    ]
