"""The dashboards as TOML, a file each, and what turns them into the files that Grafana reads.

`python -m deploy.grafana.source` writes them anew (`make dashboards`). Nothing of this is installed
with musterd.
"""
