"""The search for the maximum of the likelihood: what to ask clients next, and when to stop."""
