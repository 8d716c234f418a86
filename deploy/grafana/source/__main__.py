"""Writes the dashboards anew."""

from __future__ import annotations

from pathlib import Path

from deploy.grafana.source.boards import BOARDS
from deploy.grafana.source.draw import drawn

FOLDER = Path(__file__).resolve().parent.parent / "dashboards"

if __name__ == "__main__":
    for board in BOARDS:
        (FOLDER / board.file).write_text(drawn(board), "utf-8")
