"""Secrets that stand in files: a URL or a token, often handed over by systemd."""

import os
from collections.abc import Mapping
from pathlib import Path

from musterd.config.faults import ConfigError, Fault
from musterd.config.settings import Settings


def find_credential(name: str, environ: Mapping[str, str]) -> Path | None:
    """Gives the file of a systemd credential, if `name` is relative and there is such a one."""
    folder = environ.get("CREDENTIALS_DIRECTORY")
    if not folder or Path(name).is_absolute():
        return None
    path = Path(folder) / name
    return path if os.access(path, os.F_OK) else None


def read_secret(key: str, name: str, environ: Mapping[str, str]) -> str:
    """Gives the one line that the file holds; raises ConfigError, naming `key`, if it does not."""
    path = find_credential(name, environ) or Path(name)
    try:
        secret = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        found = f"cannot be read: {error.strerror}"
        raise ConfigError([Fault(str(path), key=key, found=found)]) from None
    except UnicodeDecodeError:
        raise ConfigError([Fault(str(path), key=key, found="not UTF-8")]) from None
    if not secret or not secret.isprintable():
        found = "more than one line" if secret else "nothing"
        raise ConfigError([Fault(str(path), key=key, found=found, wanted="one line of text")])
    return secret


def resolve_http_token(settings: Settings, environ: Mapping[str, str]) -> str:
    """Gives the bearer token, read from its file if it stands in one; "" if there is none."""
    if not settings.http.token_file:
        return settings.http.token
    return read_secret("http.token_file", settings.http.token_file, environ)
