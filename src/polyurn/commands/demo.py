"""`polyurn demo`: the whole story on built-in data.

What happens in it is `polyurn/demo.py`.
"""

from typing import Annotated

import typer

from polyurn.commands.console import print_json, say, show, talk
from polyurn.commands.options import AsJson, Seed
from polyurn.commands.terminal import demo_record, demo_sentences, demo_table, progress
from polyurn.demo import run_demo


def demo_command(
    clients: Annotated[int, typer.Option(help="How many clients to play.")] = 5_000,
    rounds: Annotated[int, typer.Option(help="Rounds that may be asked for.")] = 50,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Hide a mixture among clients who hold digits, and learn it back from sums.

    Example: `polyurn demo`
    """
    say(
        f"{clients:,} clients hold handwritten digits; who holds which is drawn from a hidden "
        "mixture of three components."
    )
    with progress(talk, rounds) as on_round:
        story = run_demo(n_clients=clients, max_rounds=rounds, rng=seed, on_round=on_round)
    if as_json:
        print_json(demo_record(story))
        return
    show(demo_table(story))
    for sentence in demo_sentences(story):
        say(sentence)
