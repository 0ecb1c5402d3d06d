"""Keep a reader's log and view in step with a store. Not pure."""
