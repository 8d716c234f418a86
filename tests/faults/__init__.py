"""Real daemons on a real PostgreSQL while both are killed, frozen, cut off and filled up; what they
did is judged by `tests.checker`.
"""
