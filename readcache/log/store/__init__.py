"""The stores of the log: one protocol, several stores, one conformance suite (tests/log/test_store_conformance.py)."""

from __future__ import annotations

from readcache.log.store.open import open_store
from readcache.log.store.protocol import IN_USE_SECONDS, NOTHING_LEFT, Store, StoreGone

__all__ = ["IN_USE_SECONDS", "NOTHING_LEFT", "Store", "StoreGone", "open_store"]
