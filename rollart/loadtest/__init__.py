"""One engine alone under load: recorded requests replayed at their times, or a number of them kept in flight."""
