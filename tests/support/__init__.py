"""What several layers of tests share; holds no tests and no fixtures of its own."""
