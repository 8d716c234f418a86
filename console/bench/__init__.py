"""bench: what this machine gives with this store, measured on a store for the occasion.

`figures` holds what came of it and `telling` says it: both pure. `circumstances` makes settings,
`kinds` the work, `marks` notes times, `course` goes through the phases.
"""
