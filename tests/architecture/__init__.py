"""The rules of the house as functions over a source tree: each yields the faults it finds."""
