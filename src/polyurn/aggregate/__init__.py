"""Ways to put a query to a cohort and bring back the sum of the answers."""
