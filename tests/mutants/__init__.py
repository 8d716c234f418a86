"""Known mistakes, made on purpose in a copy of the tree, one at a time. The simulation and its
checker must notice each of them: what they would not notice they do not prove. See
docs/proving-mutants.md.
"""
