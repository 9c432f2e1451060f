"""Data to try things on, one file per source."""
