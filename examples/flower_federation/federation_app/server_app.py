"""The server's side: its settings are in pyproject.toml."""

from polyurn.federation.flower.learning_app import server_app

app = server_app()
