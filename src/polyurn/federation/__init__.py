"""A live federation, from top to bottom; docs/federation-core.md tells it in the same order.

messages       every message as bytes
masking, graph, roster, participant, round
               sums whose summands nobody sees (docs/secure-sums.md): a node's side and the server's
exchange, tally, aggregator
               the server: who carries messages, what crossed, who is asked and how answers are added
policy, node_log, node
               a node: what its owner allows, what it was asked, and its replies
certificates, folder, jobs
               files: keys, the folders of the server and of each node, and a run
learning       the server's process: performs a job
flower/        the transport: Flower's Grid, SuperLink, SuperNode and apps
one_machine    all of it on one machine, for demos and tests
"""
