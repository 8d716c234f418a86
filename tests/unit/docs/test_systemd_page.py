"""The page on systemd names what the code sends, and nothing else."""

import re
from pathlib import Path

from tests.support.pages import page, table

MODULE = Path(__file__).parents[3] / "manager" / "node" / "systemd.py"


def test_every_message_is_told() -> None:
    rows = table(page("systemd.md"), "message", "when")
    told = {name for row in rows for name in re.findall(r"`([A-Z_]+)=", row[0])}
    assert told == set(re.findall(r'f?"([A-Z_]+)=[1{]', MODULE.read_text()))
