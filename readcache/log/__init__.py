"""A reader's log and view, in step with a store. Effects."""
