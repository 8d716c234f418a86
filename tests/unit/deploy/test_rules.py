"""The alerts fire when they should, and lead to pages that there are."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RULES = ROOT / "deploy" / "prometheus" / "musterd.rules.yml"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
@pytest.mark.parametrize("file", sorted(Path(__file__).parent.glob("*.test.yml")), ids=str)
def test_alerts_fire_when_they_should(file: Path) -> None:
    done = subprocess.run(
        ["promtool", "test", "rules", file.name],
        cwd=file.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_leads_to_what_is_to_be_done() -> None:
    books = re.findall(r"runbook: (\S+)#(\S+)", RULES.read_text())
    assert len(books) == RULES.read_text().count("- alert:")
    for page, anchor in books:
        heads = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.MULTILINE)
        assert anchor in {head.lower().replace(" ", "-") for head in heads}
