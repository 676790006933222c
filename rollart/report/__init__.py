"""Reports on a run: summary, steps, timeline and figures."""
