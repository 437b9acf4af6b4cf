"""Django settings, derived only from the validated environment."""

import os
import socket
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF
from psycopg.conninfo import conninfo_to_dict

from controlplane import assets, environment, logs

from .core.environment_variables import origin_of
from .core.protocol import MAX_BODY_BYTES

ENV = environment.read_environment()
BASE_DIR = Path(environment.ROOT)
ENVIRONMENT_NAME = ENV.name
SIBLINGS = ENV.siblings
OWNER_COMMANDS = {
    *("migrate", "makemigrations", "provision", "sqlmigrate", "showmigrations", "backup")
}
AS_OWNER = len(sys.argv) > 1 and sys.argv[1] in OWNER_COMMANDS
# `database/lock_holders.py` never terminates sessions of `switchgear owner`.
SESSION_NAME = "switchgear owner" if AS_OWNER else "switchgear"

SECRET_KEY = ENV.secret_key
SECRET_KEY_FALLBACKS = list(ENV.secret_key_fallbacks)
ALLOWED_HOSTS = ENV.allowed_hosts
ROOT_URLCONF = "controlplane.urls"
AUTH_USER_MODEL = "core.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "controlplane.core",
    "controlplane.accounts",
    "controlplane.notify",
    "controlplane.dataplane",
    "controlplane.processes",
    "controlplane.database",
    "controlplane.backup",
    "controlplane.openapi",
    "switches",
    "breakers",
    "breakers.dead_letters",
    "slo",
    "django.contrib.admin.apps.SimpleAdminConfig",  # Only the URLs load the admin's modules.
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "controlplane.accounts.authentication.apps.LazySocialAccountConfig",
    "allauth.socialaccount.providers.openid_connect",
    "axes",
    "csp",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
]

MIDDLEWARE = [
    "controlplane.core.http.middleware.RequestContextMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "controlplane.core.http.static_files.StaticFilesMiddleware",
    "controlplane.core.http.compression.CompressionMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "controlplane.accounts.people.middleware.PresenceMiddleware",
    "controlplane.core.http.middleware.NamedHostMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "controlplane.accounts.authentication.middleware.PasswordChangeMiddleware",
    "controlplane.accounts.authentication.middleware.SecondFactorMiddleware",
    "controlplane.core.http.middleware.PersonTimeZoneMiddleware",
    "controlplane.core.http.middleware.DomainErrorMiddleware",
    "axes.middleware.AxesMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "controlplane.core.http.context.describe_installation",
                "controlplane.core.attention.context.attention",
                "controlplane.core.degradation.context.degradation",
                "switches.status_summary.banner",
            ],
        },
    },
]


def _database(url: str, assume_role: str | None, pool_size: int, limits: str) -> dict[str, Any]:
    """Return Django's DATABASES entry for a database URL; parameters in the URL take precedence."""
    info = {key: value for key, value in conninfo_to_dict(url).items() if value is not None}
    options: dict[str, Any] = {
        "connect_timeout": 3,
        # Detect a vanished server: by keepalives on idle connections, and by the user timeout
        # (milliseconds) while data is unacknowledged.
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 10_000,
        # Identifies the process of a blocking session, for `database/lock_holders.py`.
        "application_name": f"{SESSION_NAME} {socket.gethostname()}:{os.getpid()}"[:63],
    }
    # Django's `assume_role` would wait for the pool that it is filling.
    role = f"-c role={assume_role}" if assume_role else ""
    session = f"{limits} {info.pop('options', '')} {role}"
    names = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST"}
    base = {django: str(info.pop(libpq, "")) for libpq, django in names.items()}
    base["PORT"] = str(info.pop("port", ""))
    if pool_size:
        options["pool"] = {"min_size": 2, "max_size": pool_size, "timeout": 5}
    return {
        "ENGINE": "controlplane.database.backend",
        **base,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {**options, **info, "options": session},
    }


if AS_OWNER:
    DATABASES = {"default": _database(ENV.database.owner_url, None, 0, "-c lock_timeout=5s")}
else:
    _limits = (
        "-c statement_timeout=8s -c lock_timeout=5s -c idle_in_transaction_session_timeout=15s"
    )
    _role, _pool = ENV.database.assume_role, ENV.database_pool
    DATABASES = {"default": _database(ENV.database.url, _role, _pool, _limits)}
DATABASE_RUNTIME_ROLE = ENV.database.assume_role or str(
    conninfo_to_dict(ENV.database.url).get("user")
)

REDIS_URL = ENV.redis_url
CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}

DEAD_LETTERS = ENV.dead_letters
SLACK = ENV.transport_settings["SLACK"]
EMAIL = ENV.transport_settings["EMAIL"]
WEBHOOK_ALLOW = ENV.transport_settings["WEBHOOK_ALLOW"]
PAGERDUTY_API_URL = ENV.transport_settings["PAGERDUTY_API_URL"]
OPSGENIE_API_URL = ENV.transport_settings["OPSGENIE_API_URL"]
PROBE_ALLOW = ENV.probe_allow
PROMETHEUS_ALLOW = ENV.prometheus_allow
PUBLIC_URL = ENV.public_url
ENTRY = ENV.entry
OIDC = ENV.oidc
TRUSTED_PROXIES = ENV.trusted_proxies
KEPT_DAYS = ENV.kept_days
HEALTH_PORT = ENV.health_port
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_BODY_BYTES

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
AXES_FAILURE_LIMIT = 8
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_CALLABLE = "controlplane.accounts.authentication.throttle.locked_out"
AXES_VERBOSE = False
AXES_ENABLE_ADMIN = False  # Its page would lift a lock-out without an audit row.
AXES_DISABLE_ACCESS_LOG = True
AXES_CLIENT_IP_CALLABLE = "controlplane.core.http.requests.client_ip"

ACCOUNT_ADAPTER = "controlplane.accounts.authentication.adapters.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_LOGIN_TIMEOUT = 600  # Seconds between the first step of signing in and the last.
MFA_ADAPTER = "controlplane.accounts.authentication.adapters.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
SOCIALACCOUNT_ADAPTER = "controlplane.accounts.authentication.adapters.ProviderCalls"
SOCIALACCOUNT_STORE_TOKENS = False
SOCIALACCOUNT_REQUESTS_TIMEOUT = 5
PASSWORD_RESET_TIMEOUT = 3600  # Seconds.

SESSION_ENGINE = "controlplane.accounts.people.session_store"
SESSION_COOKIE_AGE = ENV.entry.session_minutes * 60
if SIBLINGS:
    # Browsers send the cookies of a host to all its ports, so consoles need different names.
    _suffix = sha256(ENVIRONMENT_NAME.encode()).hexdigest()[:8]
    SESSION_COOKIE_NAME = f"sessionid_{_suffix}"
    CSRF_COOKIE_NAME = f"csrftoken_{_suffix}"
# A load balancer may send each process's own address as `Host`.
CSRF_TRUSTED_ORIGINS = [origin_of(ENV.public_url)] if ENV.public_url else []
CSRF_FAILURE_VIEW = "controlplane.core.http.pages.csrf_failed"
# Django's defaults hold for cookies (HttpOnly, SameSite=Lax), frames, referrers and sniffing.
if ENV.https_only:
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True
    SECURE_SSL_REDIRECT = True
    # Probes, scrapes and services request these without the proxy. API requests carry a token, and
    # browsers send the session cookie only by HTTPS.
    SECURE_REDIRECT_EXEMPT = [r"^health/", r"^metrics/?$", r"^api/v1/"]
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = True
    CSRF_TRUSTED_ORIGINS += [f"https://{host.replace('*', '')}" for host in ALLOWED_HOSTS]

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "manifest-src": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

LANGUAGE_CODE = "en"
USE_I18N = False
TIME_ZONE = ENV.time_zone

STATIC_URL = "/static/"
STATIC_ROOT = ENV.static_dir
DOCS_ROOT = ENV.docs_dir
STATICFILES_FINDERS = [
    "controlplane.assets.Finder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
]
STATICFILES_DIRS = assets.list_folders(BASE_DIR / "static")
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "controlplane.assets.Storage"},
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "controlplane.accounts.authentication.rest.TokenAuthentication",
        "controlplane.accounts.authentication.rest.PersonAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["controlplane.core.http.permissions.HasScope"],
    "DEFAULT_RENDERER_CLASSES": ["controlplane.core.http.json_format.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["controlplane.core.http.json_format.StrictJSONParser"],
    "DEFAULT_PAGINATION_CLASS": "controlplane.core.http.pagination.CursorPages",
    "DEFAULT_SCHEMA_CLASS": "controlplane.core.http.openapi.ApiSchema",
    "EXCEPTION_HANDLER": "controlplane.core.http.problems.handle_exception",
    "PAGE_SIZE": 50,
    "DATETIME_FORMAT": "%Y-%m-%dT%H:%M:%S.%fZ",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Switchgear",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "GET_LIB_DOC_EXCLUDES": "controlplane.core.http.openapi.undocumented_bases",
    "POSTPROCESSING_HOOKS": [
        "controlplane.dataplane.openapi.add_paths",
        "controlplane.openapi.hooks.finish",
    ],
}

LOGGING = logs.LOGGING
logs.configure_structlog()
