"""Where clients and points come from: files, as commands, sweeps and reports take them."""
