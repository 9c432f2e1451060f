"""How alike two populations of clients, or two sets of parameters, are. Nothing is fitted to data here
but one number, the concentration of a single Dirichlet.
"""
