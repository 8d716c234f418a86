"""What crews do with the same arrivals under each policy, on real daemons: how long jobs wait, and
what that costs.
"""
