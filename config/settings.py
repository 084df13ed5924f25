"""One settings file; a trial and a production differ only by their environment."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import sys
from pathlib import Path
from urllib.parse import quote

import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from runtime_app.timing import Timing

BASE_DIR = Path(__file__).resolve().parent.parent
VAR = Path(os.environ.get("COUNTERSIGN_VAR") or BASE_DIR / "var")
if "DATABASE_URL" not in os.environ and (VAR / "stack.env").exists():
    environ.Env.read_env(VAR / "stack.env")  # a running trial tells where its servers are

env = environ.Env()
VERSION = "0.1.0"
ENVIRONMENT = env.str("COUNTERSIGN_ENVIRONMENT", "trial")
if ENVIRONMENT not in {"trial", "test", "live"}:
    raise ImproperlyConfigured("COUNTERSIGN_ENVIRONMENT must be trial, test or live")
SECRET_KEY = env.str("SECRET_KEY", "only-for-commands-that-need-none" if ENVIRONMENT != "live" else environ.Env.NOTSET)
DEBUG = False
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]", "testserver"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "guardian",
    "django_rq",
    "django_htmx",
    "ninja",
    "runtime_app",
    "approvals",
]
MIDDLEWARE = [
    "runtime_app.api.middleware.ProblemsMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "runtime_app.console.middleware.ConsoleMiddleware",
]
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
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
                "runtime_app.console.context.console",
            ],
            "builtins": ["runtime_app.console.tags"],
        },
    },
]

DATABASES = {"default": env.db_url("DATABASE_URL", default="postgres:///countersign")}
DB_POOL = env.int("DB_POOL", 0)  # connections of the web process, which has a thread a request; workers keep theirs
DATABASES["default"] |= {
    "CONN_MAX_AGE": 0 if DB_POOL or env.bool("DB_FRESH_CONNECTIONS", False) else 600,
    "CONN_HEALTH_CHECKS": True,
}
if DB_POOL:
    DATABASES["default"] |= {"ENGINE": "runtime_app.api.pooled", "CONN_HEALTH_CHECKS": False}  # it tests by itself
    DATABASES["default"].setdefault("OPTIONS", {})["pool"] = {
        "min_size": 2, "max_size": max(2, DB_POOL), "timeout": 3, "reconnect_timeout": 5,
    }
# A worker that is paused inside a transaction must not hold its row locks for long, and a dead peer must be noticed.
_LIMITS = {
    "idle_in_transaction_session_timeout": env.int("DB_IDLE_IN_TRANSACTION_MS", 5_000),
    "lock_timeout": env.int("DB_LOCK_MS", 10_000),
    "statement_timeout": env.int("DB_STATEMENT_MS", 30_000),
}
if sys.argv[1:2] != ["migrate"]:
    _OPTIONS = DATABASES["default"].setdefault("OPTIONS", {})
    _GIVEN = [_OPTIONS["options"]] if "options" in _OPTIONS else []
    _OPTIONS |= {
        "options": " ".join([*_GIVEN, *(f"-c {name}={value}" for name, value in _LIMITS.items())]),
        "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "connect_timeout": 5,
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.str("REDIS_URL", "redis://127.0.0.1:6379/0")
LANES = ("default",)
RQ_QUEUES = {
    lane: {"URL": REDIS_URL, "DEFAULT_TIMEOUT": 300, "SERIALIZER": "rq.serializers.JSONSerializer"} for lane in LANES
}
RQ_SHOW_ADMIN_LINK = False

AUTH_USER_MODEL = "runtime_app.User"
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "guardian.backends.ObjectPermissionBackend",
]
ANONYMOUS_USER_NAME = None
GUARDIAN_MONKEY_PATCH_USER = False
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English")]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True

STATIC_URL = "/static/"
STATIC_ROOT = env.str("STATIC_ROOT", "") or None  # without one, files are served from where they lie
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "base-uri": [NONE],
        "object-src": [NONE],
        "frame-ancestors": [NONE],
        "form-action": [SELF],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
HTTPS = env.bool("COUNTERSIGN_HTTPS", ENVIRONMENT == "live")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_NAME = "__Host-countersign" if HTTPS else "countersign"
CSRF_COOKIE_NAME = "__Host-csrf" if HTTPS else "csrf"
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]  # probes come from beside the process, without TLS
SECURE_HSTS_SECONDS = 31536000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
if env.bool("COUNTERSIGN_BEHIND_PROXY", False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
CSRF_FAILURE_VIEW = "runtime_app.console.errors.csrf_failure"

DATA_UPLOAD_MAX_MEMORY_SIZE = 256 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 200
FILE_UPLOAD_HANDLERS = [
    "runtime_app.console.uploads.BoundedUpload",
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "django.core.files.uploadhandler.TemporaryFileUploadHandler",
]

# --- the product ---
_REQUIRED = environ.Env.NOTSET if ENVIRONMENT == "live" else None
BASE_URL = env.str("COUNTERSIGN_URL", _REQUIRED or "http://127.0.0.1:8000").rstrip("/")  # of the links that people get
try:
    _MAIL = env.email_url("EMAIL_URL", default=_REQUIRED or f"filemail:///{quote(str(VAR / 'mail'))}")
except (KeyError, ValueError, TypeError) as error:
    raise ImproperlyConfigured("EMAIL_URL must be an address such as smtp+tls://name:password@host:587") from error
globals().update({name: value for name, value in _MAIL.items() if value is not None})
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.str("EMAIL_FROM", "Countersign <countersign@localhost>")
METRICS_TOKEN = env.str("METRICS_TOKEN", "")  # who may read /metrics; empty: nobody
SANDBOX_URL = env.str("SANDBOX_URL", "http://127.0.0.1:8001")
# Provider secrets are sealed under the first of these Fernet keys and opened with any of them.
_MADE_UP = base64.urlsafe_b64encode(hashlib.sha256(b"countersign seal " + SECRET_KEY.encode()).digest()).decode()
SEAL_KEYS = env.list("COUNTERSIGN_SEAL_KEYS", default=[_MADE_UP] if ENVIRONMENT != "live" else environ.Env.NOTSET)
ORDERS = {"system": env.str("ORDERS_SYSTEM", "sandbox"), "base_url": env.str("ORDERS_URL", SANDBOX_URL)}
try:
    TIMING = Timing().with_values(json.loads(env.str("COUNTERSIGN_TIMING", "{}")))
except (ValueError, AttributeError) as error:
    raise ImproperlyConfigured(f"COUNTERSIGN_TIMING: {error}") from error
WORKER_BATCH = env.int("COUNTERSIGN_BATCH", 50)
WORKER_EFFECTS = env.int("COUNTERSIGN_EFFECTS", 8)

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": env.str("LOG_LEVEL", "INFO")},
}
