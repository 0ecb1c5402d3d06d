"""What of an output is left out, and what stands in its place. Pure."""
