"""`polyurn federation`: the commands of a live federation, a module each."""
