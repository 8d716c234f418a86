"""Whole clusters in one process, on a virtual clock, out of one seed: the product's own daemons on
its own SQLite store, with everything going wrong that the seed wants. What happened is judged by
`tests.checker`, which knows nothing of all this. See docs/proving.md.
"""
