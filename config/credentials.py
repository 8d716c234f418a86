"""Secrets in files: a URL, a token, or signing keys, often provided by systemd."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import field, frozen

from musterd.config.faults import ConfigError, Fault, Unfit
from musterd.config.listen import LONG_ENOUGH, MAKES_ONE, is_long_enough
from musterd.config.outside import HttpScope, HttpToken
from musterd.config.secrets import signing_key
from musterd.config.settings import Settings
from musterd.config.webhook_urls import is_at

MIGHT: Sequence[HttpScope] = ("admin", "read", "enqueue", "metrics")
UNREADABLE = "cannot be read: "


def find_credential(name: str, environ: Mapping[str, str]) -> Path | None:
    """The file of a systemd credential; None if `name` is absolute or no such file exists."""
    folder = environ.get("CREDENTIALS_DIRECTORY")
    if not folder or Path(name).is_absolute():
        return None
    path = Path(folder) / name
    return path if os.access(path, os.F_OK) else None


def read_secret(key: str, name: str, environ: Mapping[str, str]) -> str:
    """The only line of the file. Raises ConfigError, naming `key`, if there is no such line."""
    path = find_credential(name, environ) or Path(name)
    secret = _text_of(key, path).strip()
    if not secret or not secret.isprintable():
        found = "more than one line" if secret else "nothing"
        raise ConfigError([Fault(str(path), key=key, found=found, wanted="one line of text")])
    return secret


@frozen(repr=False)
class SigningKeys:
    """The keys that sign webhooks: a receiver's own, or those for all others."""

    others: tuple[bytes, ...] = ()
    by_receiver: Mapping[str, tuple[bytes, ...]] = {}

    def of(self, url: str) -> tuple[bytes, ...]:
        """Empty if what goes there is not signed."""
        fitting = [receiver for receiver in self.by_receiver if is_at(url, receiver)]
        return self.by_receiver[max(fitting, key=len)] if fitting else self.others

    def __len__(self) -> int:
        return len(self.others) + sum(map(len, self.by_receiver.values()))


def resolve_signing_keys(settings: Settings, environ: Mapping[str, str]) -> SigningKeys:
    """The keys that sign webhooks; none if no secret is set. Raises ConfigError."""
    webhooks = settings.webhooks
    others = tuple(signing_key(secret) for secret in webhooks.secret)
    if webhooks.secret_file:
        others = _keys_in("webhooks.secret_file", webhooks.secret_file, environ)
    by_receiver = {
        one.url: _keys_in("webhooks.receivers", one.secret_file, environ)
        for one in webhooks.receivers
    }
    return SigningKeys(others, by_receiver)


def _keys_in(key: str, name: str, environ: Mapping[str, str]) -> tuple[bytes, ...]:
    """The secrets in a file, one a line."""
    path = find_credential(name, environ) or Path(name)
    lines = [line.strip() for line in _text_of(key, path).splitlines()]
    found: list[bytes] = []
    faults: list[Fault] = []
    for number, line in enumerate(lines, start=1):
        try:
            found += [signing_key(line)] if line else []
        except Unfit as unfit:
            said = Fault(str(path), number, key, "another text", unfit.wanted, unfit.hint)
            faults.append(said)
    if not found and not faults:
        faults.append(Fault(str(path), key=key, found="nothing", wanted="a secret a line"))
    if faults:
        raise ConfigError(faults)
    return tuple(found)


@frozen
class BearerToken:
    """A token of the HTTP API: its holder's name, the token, and what it allows."""

    name: str
    secret: str = field(repr=False)
    scopes: tuple[HttpScope, ...]


def resolve_http_tokens(settings: Settings, environ: Mapping[str, str]) -> tuple[BearerToken, ...]:
    """All bearer tokens, the unrestricted one first. Raises ConfigError with all faults."""
    http = settings.http
    found = [BearerToken("admin", http.token, ("admin",))] if http.token else []
    first = HttpToken("admin", http.token_file, ("admin",)) if http.token_file else None
    faults: list[Fault] = []
    for token in (first, *http.tokens) if first else http.tokens:
        key = "http.token_file" if token is first else f"http.tokens.{token.name}.token_file"
        try:
            secret = read_secret(key, token.token_file, environ)
        except ConfigError as error:
            faults.extend(error.faults)
            continue
        if not is_long_enough(secret, http.listen):
            said = "a shorter token"
            faults.append(Fault(token.token_file, None, key, said, LONG_ENOUGH, MAKES_ONE))
        if twin := next((one.name for one in found if one.secret == secret), None):
            said = f"the same token as that of {twin}"
            faults.append(Fault(token.token_file, key=key, found=said, wanted="one of its own"))
        found.append(BearerToken(token.name, secret, token.scopes))
    if faults:
        raise ConfigError(faults)
    return tuple(found)


def check_token_files(settings: Settings, environ: Mapping[str, str]) -> None:
    """Raises ConfigError with the faults of those that can be read here: others may be for the
    daemon alone.
    """
    try:
        resolve_http_tokens(settings, environ)
    except ConfigError as error:
        faults = [one for one in error.faults if not one.found.startswith(UNREADABLE)]
        if faults:
            raise ConfigError(faults) from None


def resolve_http_token(settings: Settings, environ: Mapping[str, str]) -> str:
    """The most powerful token; "" if there is none. Raises ConfigError if it cannot be read."""
    http = settings.http
    if http.token:
        return http.token
    if http.token_file:
        return read_secret("http.token_file", http.token_file, environ)
    ranks = [min(map(MIGHT.index, token.scopes)) for token in http.tokens]
    mightiest = http.tokens[ranks.index(min(ranks))] if ranks else None
    return "" if mightiest is None else read_secret("http.tokens", mightiest.token_file, environ)


def _text_of(key: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        found = f"{UNREADABLE}{error.strerror}"
        raise ConfigError([Fault(str(path), key=key, found=found)]) from None
    except UnicodeDecodeError:
        raise ConfigError([Fault(str(path), key=key, found="not UTF-8")]) from None
