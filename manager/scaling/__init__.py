"""How large the crew is to be: observing, sharing with other nodes, deciding. `model` decides once
more what was decided, with other settings.
"""
