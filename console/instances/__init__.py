"""Instances of a systemd template: how many of them run follows from how much work there is."""
