"""Find the part of the view that a harness's own conversation still shows. Pure."""
