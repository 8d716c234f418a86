"""workers: one worker's life. The desk brings it claims, `attempt` runs them, their ends go back to
the desk.

Nothing here knows Prometheus, HTTP or the command line: what happened is told to a `JobObserver` given
at hiring.
"""
