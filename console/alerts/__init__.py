"""The rules for Prometheus that musterd ships with, and those for the promises of a catalog."""
