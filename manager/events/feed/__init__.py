"""feed: the log of events as it grows, told to all who follow it over HTTP.

One feed a tenancy: it reads the log once for all its readers.
"""
