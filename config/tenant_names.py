"""Names of tenants, and names derived from them."""

import re

DEFAULT_TENANT = "default"
NAME_WANTED = "a name of a-z, 0-9 and _, a letter first, at most 41 long"

NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")


def check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise ValueError(f"found tenant {name!r}, wanted {NAME_WANTED}")


def schema_of(base: str, name: str) -> str:
    """The schema of a tenant that does not name one."""
    return base if name == DEFAULT_TENANT else f"{base}_{name}"


def beside(url: str, name: str) -> str:
    """The SQLite URL of a tenant's file, in the folder of the default tenant's."""
    if name == DEFAULT_TENANT:
        return url
    folder, slash, _ = url.rpartition("/")
    return f"{folder}{slash}{name}.db"
