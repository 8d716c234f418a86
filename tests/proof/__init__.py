"""What is shown before a release and takes hours: more of the same faults, many simulated clusters,
an hour under load. `make proof`.
"""
