"""All dashboards, the first one first."""

from __future__ import annotations

from deploy.grafana.source import faults, overview, scaling, store, tenants

BOARDS = (overview.board(), scaling.board(), faults.board(), store.board(), tenants.board())
