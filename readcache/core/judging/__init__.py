"""Decide which lines of an output to omit, and write the markers. Pure."""
