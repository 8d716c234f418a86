"""What pages load beside their HTML: its address changes with its content, so browsers keep it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.resources import files

from attrs import frozen

HASH_LENGTH = 12
TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@frozen
class Asset:
    path: str
    content: bytes
    media_type: str
    hash: str

    @property
    def url(self) -> str:
        return f"{self.path}?v={self.hash}"


def _asset(name: str) -> Asset:
    content = files(__package__ or "").joinpath(name).read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:HASH_LENGTH]
    return Asset(f"/ui/{name}", content, TYPES[name.rpartition(".")[2]], digest)


ASSETS: Mapping[str, Asset] = {
    asset.path: asset for asset in map(_asset, ("style.css", "script.js", "icon.svg"))
}
STYLE_URL = ASSETS["/ui/style.css"].url
SCRIPT_URL = ASSETS["/ui/script.js"].url
ICON_URL = ASSETS["/ui/icon.svg"].url

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
