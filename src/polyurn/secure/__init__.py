"""Sums whose summands nobody sees: Bonawitz et al. (2017) on the graph of Bell et al. (2020).

`Participant` is a node's side of one sum and `Round` is the server's. Both are state machines over
`bytes`; who carries the bytes is not known here. The protocol is in docs/secure-sums.md.
"""
