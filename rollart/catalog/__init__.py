"""Device kinds and models that are known by name; both lists can be extended from a scenario file."""
