"""Seconds of single operators of an engine iteration: products, attention, experts, collectives."""
