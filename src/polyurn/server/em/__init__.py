"""What the sums of one round say: likelihood, gradient, Hessian and EM step. It searches nothing."""
