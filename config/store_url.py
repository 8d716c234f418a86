"""Which database the queue lives in: the one place that says so."""

from collections.abc import Mapping
from pathlib import Path

from musterd.config.credentials import read_secret
from musterd.config.faults import ConfigError, Fault, Unfit
from musterd.config.secrets import mask_url
from musterd.config.settings import Settings
from musterd.config.tenant_names import beside
from musterd.config.toml_text import short_text
from musterd.config.validators import STORE_SCHEMES, check_url

_SQLITE = "sqlite:///"


def resolve_store_url(settings: Settings, environ: Mapping[str, str]) -> str:
    """Gives the store's URL: `url`, else what `url_file` holds, else SQLite in the state directory.

    A tenant without a URL of its own has its file beside that of the default tenant. `PG*`
    variables choose nothing here; libpq reads them once a PostgreSQL URL is chosen.
    Raises ConfigError if the file cannot be read or holds no such URL.
    """
    url = _given_url(settings, environ)
    own = settings.tenants[settings.tenant].place
    if own.url or own.url_file or not url.startswith("sqlite:"):
        return url
    return beside(url, settings.tenant)


def _given_url(settings: Settings, environ: Mapping[str, str]) -> str:
    if settings.store.url:
        return settings.store.url
    if settings.store.url_file:
        return _url_from_file(settings.store.url_file, environ)
    return f"{_SQLITE}{state_directory(environ) / 'musterd.db'}"


def state_directory(environ: Mapping[str, str]) -> Path:
    """Gives the folder of what musterd keeps: systemd's, else the user's own."""
    given = environ.get("STATE_DIRECTORY", "").split(":")[0]  # systemd may name several
    if given:
        return Path(given).absolute()
    base = Path(environ.get("XDG_STATE_HOME", ""))
    if not base.is_absolute():  # the XDG rules say to ignore a relative one
        base = _home(environ) / ".local" / "state"
    return base / "musterd"


def sqlite_path(url: str) -> Path:
    """Gives the file that a `sqlite:///` URL names. Nothing in it is percent-decoded."""
    if not url.startswith(_SQLITE):
        raise ValueError(f"not a SQLite URL: {mask_url(url)}")
    return Path(url.removeprefix(_SQLITE))


def _url_from_file(name: str, environ: Mapping[str, str]) -> str:
    url = read_secret("store.url_file", name, environ)
    try:
        check_url(url, STORE_SCHEMES)
    except Unfit as unfit:
        found = short_text(mask_url(url))
        fault = Fault(name, None, "store.url_file", found, unfit.wanted, unfit.hint)
        raise ConfigError([fault]) from None
    return url


def _home(environ: Mapping[str, str]) -> Path:
    try:
        return Path(environ.get("HOME") or Path.home())
    except RuntimeError:
        hint = "set STATE_DIRECTORY or store.url"
        fault = Fault("environment", key="HOME", found="no home directory", hint=hint)
        raise ConfigError([fault]) from None
