"""Federated training on simulated clients: does tuning there pick what wins on the true ones?"""
