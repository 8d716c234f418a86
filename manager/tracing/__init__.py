"""tracing: the traces of jobs. `carrying` brings that of whoever made a job to its attempt; `spans`
puts spans around claims, attempts and settlements, and is the only module that imports
OpenTelemetry.
"""
