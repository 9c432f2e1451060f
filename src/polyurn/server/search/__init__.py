"""The search for the maximum of the likelihood, from sums over clients."""
