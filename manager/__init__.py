"""manager: the daemon. It wires store, desk, crew and supervisor, and speaks to the outside:
signals, HTTP, metrics, command line.
"""
