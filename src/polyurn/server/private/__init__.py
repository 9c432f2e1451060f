"""The fit under differential privacy: what to ask, what noisy sums say, and what to do next."""
