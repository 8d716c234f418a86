"""Keeps systemd informed about the daemon, by the protocol of sd_notify(3)."""
