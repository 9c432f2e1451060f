"""polyurn on a Flower federation: nodes, aggregator and apps; each module needs the extra `flower`."""
