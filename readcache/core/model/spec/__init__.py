"""The promise as an executable model. It imports nothing of the package; docs/specification.md is its text."""
