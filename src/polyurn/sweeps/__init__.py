"""Federated training over hyper-parameters and populations, and what it predicts."""
