"""Django's settings, wiring only: every value that an operator may set is read in config/env.py."""

import sys
from pathlib import Path
from typing import Any

from csp.constants import NONCE, NONE, SELF

from config import env

BASE_DIR = Path(__file__).resolve().parent.parent
TESTING = env.TESTING
CHECKING_TYPES = "mypy" in sys.modules

SECRET_KEY = env.SECRET_KEY
DEBUG = False

# The address that people use says whom to trust. Without it: this machine alone, on any port.
NOTEWIRE_URL = env.NOTEWIRE_URL and f"{env.NOTEWIRE_URL.scheme}://{env.NOTEWIRE_URL.netloc}"
ALLOWED_HOSTS = ["localhost", ".localhost", "127.0.0.1", "[::1]"]
if env.HOST not in (*ALLOWED_HOSTS, "0.0.0.0", "::"):  # noqa: S104
    ALLOWED_HOSTS.append(env.HOST)
if env.NOTEWIRE_URL and NOTEWIRE_URL:
    ALLOWED_HOSTS.append(str(env.NOTEWIRE_URL.hostname))
    CSRF_TRUSTED_ORIGINS = [NOTEWIRE_URL]
    if env.NOTEWIRE_URL.scheme == "https":
        SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
        SECURE_HSTS_SECONDS = 365 * 24 * 3600
        SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

INSTALLED_APPS = [
    "config",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "procrastinate.contrib.django",
    "web",
    "accounts",
    "tools",
    "notes",
    "chat",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "web.middleware.private",
    "web.middleware.checked_address",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF, NONCE],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]


def _database() -> dict[str, Any]:
    if env.DATABASE_URL is not None:
        return env.DATABASE_URL
    if CHECKING_TYPES:  # mypy's plugin loads this module, and needs no server
        return {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres"}
    try:
        from config import embedded_postgres

        name = "postgres-test" if TESTING else "postgres"
        return embedded_postgres.database(env.NOTEWIRE_HOME / name, durable=not TESTING)
    except ImportError:
        env.stop("PostgreSQL comes for Unix alone: set DATABASE_URL.")
    except embedded_postgres.EmbeddedPostgresError as error:
        env.stop(error)


DATABASES = {"default": _database()}
DATABASES["default"]["ENGINE"] = "config.postgresql"
DATABASES["default"] |= {"CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": True}
DATABASES["default"]["OPTIONS"] = DATABASES["default"].get("OPTIONS", {}) | {
    # A connection attempt that is given up soon is begun anew by the next who needs one; one that
    # goes on waits ever longer, also when the server is back.
    "pool": {"min_size": 1, "max_size": 12, "timeout": 3, "reconnect_timeout": 4}
}

AUTH_USER_MODEL = "accounts.User"
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
CSRF_FAILURE_VIEW = "web.errors.csrf_failure"
# The ASGI edge holds the real limits, 1 MiB nearly everywhere: this is the largest of them.
DATA_UPLOAD_MAX_MEMORY_SIZE = 32 * 1024 * 1024
# The card of an answer has fields for each argument of each of its calls.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 20_000

REST_FRAMEWORK = {
    # Tokens first: the first scheme words the 401 that an anonymous request gets.
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "accounts.authentication.TokenAuthentication",
        "accounts.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "rest_framework.permissions.IsAuthenticated",
        "web.permissions.HasScope",
    ],
    "DEFAULT_PARSER_CLASSES": ["web.parsers.BoundedJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "web.negotiation.OneFormat",
    "DEFAULT_PAGINATION_CLASS": "web.pagination.CursorPagination",
    "DEFAULT_SCHEMA_CLASS": "web.schema.Schema",
    "DEFAULT_METADATA_CLASS": None,
    "NON_FIELD_ERRORS_KEY": "",  # which no field can be called
    "EXCEPTION_HANDLER": "web.errors.exception_handler",
    "URL_FORMAT_OVERRIDE": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Notewire",
    "DESCRIPTION": "Notes, and chats with language models that act on them.",
    "VERSION": "0.1.0",
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "/api",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PUBLIC": True,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "RunStatusEnum": "chat.models.RunStatus",
        "TransferStatusEnum": "notes.models.TransferStatus",
        "ToolCallStatusEnum": "chat.models.ToolCallStatus",
    },
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = env.NOTEWIRE_HOME / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "servestatic.storage.CompressedManifestStaticFilesStorage"},
}
SERVESTATIC_ALLOW_ALL_ORIGINS = False
SERVESTATIC_USE_BROTLI = False  # a minute at the first start, to spare a tenth of the bytes
if TESTING:  # straight from where they are, so that nothing need be collected
    STORAGES["staticfiles"]["BACKEND"] = "django.contrib.staticfiles.storage.StaticFilesStorage"
    SERVESTATIC_USE_FINDERS = True
    SERVESTATIC_USE_STATIC_ROOT = False
    PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "filters": {
        "once_per_outage": {"()": "web.outages.OncePerOutage"},
        "without_traceback": {"()": "web.logs.WithoutTraceback"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": "line",
            "filters": ["once_per_outage", "without_traceback"],
        }
    },
    "root": {"handlers": ["console"], "level": env.NOTEWIRE_LOG_LEVEL},
    "loggers": {
        "django": {"level": env.NOTEWIRE_LOG_LEVEL},
        # What they say at INFO is of use to their authors: one line per request, job and listener.
        **{
            name: {"level": "DEBUG" if env.NOTEWIRE_LOG_LEVEL == "DEBUG" else "WARNING"}
            for name in ("httpx", "procrastinate", "psycopg", "uvicorn", "asyncio")
        },
    },
}

PROCRASTINATE_IMPORT_PATHS = [
    "chat.runs.jobs",
    "notes.jobs",
    "notes.search.jobs",
    "notes.transfer.jobs",
]

# Made by the lifespan of the ASGI application: an async context manager with `drain()`.
NOTEWIRE_RUNTIME: str | None = "chat.runs.runtime.Runtime"
# Held open by processes that live long: what starts the embedded database again when it died.
NOTEWIRE_DATABASE_WATCH = "config.database_watch.watching"
NOTEWIRE_DATABASE_IS_EMBEDDED = env.DATABASE_URL is None
NOTEWIRE_WORKER = env.NOTEWIRE_WORKER
NOTEWIRE_METRICS_TOKEN = env.NOTEWIRE_METRICS_TOKEN
NOTEWIRE_DEFAULT_MODEL = env.NOTEWIRE_DEFAULT_MODEL
NOTEWIRE_DEMO = env.NOTEWIRE_DEMO
NOTEWIRE_TOOL_POLICY = env.NOTEWIRE_TOOL_POLICY
NOTEWIRE_HOME = env.NOTEWIRE_HOME
NOTEWIRE_APPROVAL_MODE = env.NOTEWIRE_APPROVAL_MODE
NOTEWIRE_APPROVAL_DAYS = env.NOTEWIRE_APPROVAL_DAYS
NOTEWIRE_HISTORY_BYTES = env.NOTEWIRE_HISTORY_BYTES
NOTEWIRE_RUN_TOKENS = env.NOTEWIRE_RUN_TOKENS
NOTEWIRE_GATHER_MS = env.NOTEWIRE_GATHER_MS

OPENAI_API_KEY = env.OPENAI_API_KEY
OPENAI_BASE_URL = env.OPENAI_BASE_URL
ANTHROPIC_API_KEY = env.ANTHROPIC_API_KEY
ANTHROPIC_BASE_URL = env.ANTHROPIC_BASE_URL
OPENROUTER_API_KEY = env.OPENROUTER_API_KEY
VENICE_API_KEY = env.VENICE_API_KEY
GROQ_API_KEY = env.GROQ_API_KEY
MISTRAL_API_KEY = env.MISTRAL_API_KEY
DEEPSEEK_API_KEY = env.DEEPSEEK_API_KEY
GEMINI_API_KEY = env.GEMINI_API_KEY
OLLAMA_BASE_URL = env.OLLAMA_BASE_URL
LMSTUDIO_BASE_URL = env.LMSTUDIO_BASE_URL
LLAMACPP_BASE_URL = env.LLAMACPP_BASE_URL
