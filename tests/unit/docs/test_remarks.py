"""The page on running tells every remark of `musterd status`."""

import re

from tests.support.pages import ROOT, codes, page, table

SOURCES = (ROOT / "console" / "verbs" / "status.py", ROOT / "store" / "remarks.py")


def test_every_remark_is_told() -> None:
    text = "".join(path.read_text("utf-8") for path in SOURCES)
    made = set(re.findall(r'"([A-Z_]{4,12}) ', text)) | {"WARNING"}
    told = {
        code for cell, *_ in table(page("running.md"), "remark", "means") for code in codes(cell)
    }
    assert told == made
