"""The software bill of materials of a release (CycloneDX 1.6, JSON): what requirements/run.txt
names by hash. It says nothing that differs from one call to the next: no time, no serial number.

`python -m deploy.sbom` writes it to stdout; `make release` puts it beside what it builds.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from musterd import __version__

LOCK = Path(__file__).parents[1] / "requirements" / "run.txt"
_PINNED = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(?P<version>[^\s;\\]+)"
    r"(?:\s*;\s*(?P<marker>[^\\\n]+?))?\s*(?P<hashes>(?:\\\n\s+--hash=sha256:[0-9a-f]{64}\s*)+)",
    re.MULTILINE,
)
_HASH = re.compile(r"sha256:([0-9a-f]{64})")


def bill(lock: str, version: str) -> dict[str, object]:
    """The document, from the text of the lock."""
    parts = sorted(_components(lock), key=lambda part: (str(part["name"]), str(part["version"])))
    root = {
        "type": "application",
        "bom-ref": f"pkg:pypi/musterd@{version}",
        "name": "musterd",
        "version": version,
        "purl": f"pkg:pypi/musterd@{version}",
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": root},
        "components": parts,
        "dependencies": [{"ref": root["bom-ref"], "dependsOn": [one["bom-ref"] for one in parts]}],
    }


def _components(lock: str) -> Iterator[dict[str, object]]:
    for found in _PINNED.finditer(lock):
        name, version = found["name"].lower(), found["version"]
        purl = f"pkg:pypi/{name}@{version}"
        hashes = [{"alg": "SHA-256", "content": text} for text in _HASH.findall(found["hashes"])]
        part: dict[str, object] = {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": version,
            "purl": purl,
            "externalReferences": [
                {
                    "type": "distribution",
                    "url": purl,
                    "hashes": hashes,
                }
            ],
        }
        if found["marker"]:
            part["properties"] = [{"name": "musterd:marker", "value": found["marker"]}]
        yield part


if __name__ == "__main__":
    json.dump(bill(LOCK.read_text("utf-8"), __version__), sys.stdout, indent=1)
    sys.stdout.write("\n")
