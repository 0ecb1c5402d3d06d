"""The promise as an executable model. It imports nothing from the package; docs/specification.md describes it in
words."""
