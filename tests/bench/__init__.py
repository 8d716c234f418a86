"""Benchmarks: what a job costs, beside what the bare database costs in the same run. Nothing here
asserts a time.
"""
