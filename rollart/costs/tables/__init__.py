"""Measured operator tables: finding and reading them, and answering from them between and beyond their rows."""
