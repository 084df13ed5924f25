#!/usr/bin/env python
"""Django's command line for this project."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError:
        sys.exit("Nothing is installed for this Python: use make up, or .venv/bin/python manage.py once that was run.")
    execute_from_command_line(sys.argv)
