"""What can go wrong with a daemon beside its store."""

from __future__ import annotations


class StartError(Exception):
    """The daemon cannot start as it is configured; the message names the key and what helps."""
