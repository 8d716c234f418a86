"""The invariants, each by what shows it. `tests.checker.table` lists them."""
