"""Differential privacy: what a release costs, its noise, and the ledger of a budget."""
