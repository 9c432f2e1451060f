"""Which proxy points each simulated client holds."""
