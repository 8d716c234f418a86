"""feed: the log of events as it grows, sent to all that follow it over HTTP.

One feed a tenancy: it reads the log once for all its readers.
"""
