"""The commands, one module for each group; `cli.py` puts them in order."""
