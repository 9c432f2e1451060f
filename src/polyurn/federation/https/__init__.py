"""HTTPS between a federation's server and its nodes, in TLS 1.3 with certificates on both sides."""
