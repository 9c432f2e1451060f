"""HTTPS between a federation's server and its nodes, in TLS 1.3 with certificates on both sides.

protocol       names, limits and TLS contexts that all of them share
server         the server's process: hands messages to nodes that ask for them, and replies back
link           a node's side: outgoing requests only, again and again
asking         the operator's side: an `Exchange`, and the start and end of the server's process
"""
