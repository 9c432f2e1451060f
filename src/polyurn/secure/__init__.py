"""Sums whose summands nobody sees, over `bytes`.

The protocol of Bonawitz et al. (2017) on the graph of Bell et al. (2020); docs/secure-sums.md has it
message by message. `Participant` is a node's side of one sum and `Round` is the server's. Both are
state machines; who carries the bytes is not known here.
"""
