"""SHOP_DATABASE is the name of a PostgreSQL database by libpq's variables, or a SQLite file."""

import json
import os
from pathlib import Path

facts = json.loads(Path(os.environ["SHOP_FACTS"]).read_text())

SECRET_KEY = "of tests"
USE_TZ = True
INSTALLED_APPS = ["shop"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {"default": facts["database"]}
TASKS = {
    "default": {
        "BACKEND": "musterd.contrib.django.MusterdBackend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": facts["options"],
    }
}
