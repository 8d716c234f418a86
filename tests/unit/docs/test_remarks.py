"""The page on running tells every remark of `musterd status`."""

import re
from pathlib import Path

from tests.support.pages import ROOT, codes, page, table

SOURCE = Path(ROOT / "console" / "verbs" / "status.py").read_text("utf-8")


def test_every_remark_is_told() -> None:
    made = set(re.findall(r'"([A-Z]{4,8}) ', SOURCE)) | {"WARNING"}
    told = {
        code for cell, *_ in table(page("running.md"), "remark", "means") for code in codes(cell)
    }
    assert told == made
