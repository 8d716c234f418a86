"""What systemd is told of the daemon, by the protocol of sd_notify(3)."""
