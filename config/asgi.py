"""The web process: console, API and event streams."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# Under ASGI every request has a thread of its own, so without a pool every request would open a connection.
os.environ.setdefault("DB_POOL", "16")
django = get_asgi_application()

from runtime_app.api.entrance import limited  # noqa: E402 - needs the settings that the line above reads

application = limited(django)
