"""Input of all sorts against the HTTP side of a real daemon: `make fuzz`."""
