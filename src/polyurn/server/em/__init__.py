"""What the sums of one round say: likelihood, gradient, Hessian and EM step. Nothing is searched here."""
