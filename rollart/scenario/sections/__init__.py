"""The schema of scenario and plan files, one module a section; units belong to the keys."""
