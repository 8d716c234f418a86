"""The dashboards as values, and what turns them into the files that Grafana reads.

`python -m deploy.grafana.source` writes them anew (`make dashboards`). Nothing of this is installed
with musterd.
"""
