"""See the README of `report`."""
