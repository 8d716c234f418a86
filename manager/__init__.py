"""manager: the daemon. It runs a crew for each tenant, sizes it, and does the background work.

It knows neither HTTP nor the command line: `web` and `console` are built on it.
"""
