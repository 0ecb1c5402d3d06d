"""Which part of the view a harness's own conversation still shows. Pure."""
