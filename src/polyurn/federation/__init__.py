"""A live federation, from top to bottom; docs/federation-core.md tells it in the same order.

messages       every message as bytes
masking, graph, participant, round
               sums whose summands nobody sees (docs/secure-sums.md): a node's side and the server's
exchange, aggregator
               the server: how messages reach nodes, which nodes are asked, how answers are added
policy, node_log, node, owned_node
               a node: what its owner allows, what it was asked, its replies, and its files
keys, folder, jobs
               files: keys, the folders of the server and of each node, and a run
server_process performs a job over any exchange
https/         the transport: a server's process, and nodes that ask it for messages
flower/        another one, and apps for Flower's SuperLink and SuperNodes
processes      processes that are known by a file
one_machine    all of it on one machine, for demos and tests
"""
