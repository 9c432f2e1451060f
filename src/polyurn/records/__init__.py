"""Frozen values as JSON records and back. What a record means is said by its class, in its own room."""
