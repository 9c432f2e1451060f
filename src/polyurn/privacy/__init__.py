"""Differential privacy: what a release costs, its noise, the ledger of a budget, and an audit."""
