"""The clients' side: the only folder that touches a client's records."""
