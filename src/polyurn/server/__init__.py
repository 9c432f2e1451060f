"""The server's side: sees sums over clients, never imports `client`."""
