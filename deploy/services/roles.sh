#!/bin/sh
# Runs once, when the database is made: the login of the running application, which owns nothing.
# What it may do is granted by `manage.py provision`.
set -eu
psql --set ON_ERROR_STOP=1 --set password="$APP_DATABASE_PASSWORD" \
    --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
CREATE ROLE switchgear_app LOGIN PASSWORD :'password';
SQL
