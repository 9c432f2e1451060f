"""The commands, those with one idea in one module; `app.py` puts them in order.

A command parses, calls one library function, and prints or writes. Its module imports what it works with
when its command runs, so that `--help` loads no numpy.
"""
