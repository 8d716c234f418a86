"""What other settings would have made of past jobs: a trace of them, the supervisor's own decisions
on a virtual clock, and figures. All of it is pure.
"""
