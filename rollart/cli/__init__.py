"""The `rollart` command: a thin skin over the Python API."""
