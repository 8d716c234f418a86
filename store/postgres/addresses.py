"""Where a URL leads: its parameters for libpq, and the words for it that people read. Clients need
nothing of what nodes connect by.
"""

from __future__ import annotations

import re

import psycopg
from psycopg.abc import ConnDict
from psycopg.conninfo import conninfo_to_dict

from musterd.config.secrets import MASK, mask_url
from musterd.store.errors import StoreMisconfigured

_QUOTED = re.compile('"([^"]*)"')


def place(attempt: ConnDict) -> str:
    """One host's name for people, as `host:port`."""
    return places(attempt)[0]


def places(params: ConnDict) -> list[str]:
    """Where these parameters lead, as `host:port` each."""
    hosts = str(params.get("host") or params.get("hostaddr") or "local socket").split(",")
    ports = str(params.get("port") or "").split(",")
    if len(ports) != len(hosts):  # one for all, as libpq has it
        ports = ports[:1] * len(hosts)
    pairs = zip(hosts, ports, strict=True)
    return [
        f"{host or 'local socket'}:{port}" if port else host or "local socket"
        for host, port in pairs
    ]


def connection_params(url: str) -> ConnDict:
    """The URL's parameters over defaults that find a dead peer within seconds. Raises
    `StoreMisconfigured`.
    """
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise StoreMisconfigured(
            f"[store] url cannot be read: {without_secrets(str(error).strip(), url)}:"
            " want postgresql://USER@HOST:PORT/DATABASE"
        ) from None
    defaults: ConnDict = {
        "application_name": "musterd",
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 15000,
    }
    if len(places(given)) > 1:  # only one of them takes what we write
        defaults["target_session_attrs"] = "read-write"
    return defaults | given


def without_secrets(message: str, url: str) -> str:
    """What libpq says of a URL, without what it quotes of the URL's secrets."""
    shown = mask_url(url)
    return _QUOTED.sub(lambda found: found[0] if found[1] in shown else f'"{MASK}"', message)


def address(params: ConnDict) -> str:
    """Where this leads, for people, without secrets."""
    database = params.get("dbname") or params.get("user") or "default database"
    return f"postgresql {','.join(places(params))}/{database}"
