"""The commands, one module each; `cli.py` puts them in order.

A module imports what it works with when its command runs, so that `--help` loads no numpy.
"""
