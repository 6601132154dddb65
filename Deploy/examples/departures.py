#!/usr/bin/env python3
"""A departure board: one change concerns 100,000 widgets.

usage: Deploy/examples/departures.py [CLIENTS]

Each of 20,000 clients shows five lines of the main station, and 100 others show another station. Some
of both follow a stream. Then one change concerns the main station: each stream there has to get one
notification, the gateway has to know all 100,000 widgets as stale, and clients that poll have to find
their five stale. At the other station, nothing happens.
"""
import concurrent.futures
import statistics
import sys
import time

import timeline
from timeline import Client, ask, expect, widget

LINES = ("U1", "U2", "U3", "U4", "U6")
STREAMS, POLLS = 200, 200
OTHERS, OTHER_STREAMS = 100, 10


def boards(station):
    return [widget("com.example.departures.board", station=station, line=line) for line in LINES]


def follow(client, told):
    for claims in client.follow():
        told.append((time.monotonic(), claims))


def stale(prefix):
    """The number of stale widgets of the clients whose names begin so, which the gateway counts."""
    number, page = 0, {"after": ""}
    while "after" in page:
        after = page["after"] and f"&after={page['after']}"
        page = ask("GET", f"/clients?limit=1000&prefix={prefix}{after}")
        number += sum(client["stale"] for client in page["clients"])
    return number


def post(change):
    """Posts a change; returns when it began and when it was accepted, and its sequence."""
    batch = timeline.events("/railway", [change])
    began = time.monotonic()
    sequence = timeline.post(batch)["sequence"]
    return began, time.monotonic(), sequence


def wait(streams, sequence):
    while not all(told and told[-1][1]["seq"] >= sequence for told in streams.values()):
        time.sleep(0.01)


def main():
    if sys.argv[1:] and not sys.argv[1].isdigit():
        sys.exit(__doc__)
    number = int(sys.argv[1]) if sys.argv[1:] else 20_000
    timeline.put_catalog(__file__)
    Client.remove_all()

    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(8) as workers:
        names = [f"main-{index}" for index in range(number)]
        clients = list(workers.map(lambda name: Client(name, boards("main")), names))
        names = [f"east-{index}" for index in range(OTHERS)]
        others = list(workers.map(lambda name: Client(name, boards("east")), names))
        widgets = len(LINES) * len(clients)
        print(f"{len(clients)} clients with {widgets} widgets registered in "
              f"{time.monotonic() - began:.1f} s")

        streams = {client: [] for client in clients[:STREAMS]}
        other_streams = {client: [] for client in others[:OTHER_STREAMS]}
        for client, told in (streams | other_streams).items():
            timeline.beside(follow, client, told)
        for client in streams | other_streams:
            client.opened.wait()

        change = {"entity": "Station", "id": "main", "properties": ["departures"]}
        asked = ask("POST", "/changes/explain", timeline.events("/railway", [change]),
                    kind="application/cloudevents-batch+json")["events"][0]["holders"]
        expect("widgets that the change would concern", asked["widgets"], widgets)
        posted, accepted, sequence = post(change)
        wait(streams, sequence)
        after = sorted(told[0][0] - posted for told in streams.values())
        print(f"one change: accepted after {1000 * (accepted - posted):.0f} ms; {len(streams)} streams "
              f"notified after {1000 * after[0]:.0f} to {1000 * after[-1]:.0f} ms, "
              f"half of them by {1000 * statistics.median(after):.0f} ms")

        began = time.monotonic()
        expect("stale widgets", (stale("main-"), stale("east-")), (widgets, 0))
        print(f"{widgets} widgets stale, those of the other station not: asked in "
              f"{1000 * (time.monotonic() - began):.0f} ms")
        polled = workers.map(Client.poll, clients[-POLLS:] + others[OTHER_STREAMS:])
        expect("stale widgets of clients that poll", [len(found) for found in polled],
               [len(LINES)] * POLLS + [0] * (OTHERS - OTHER_STREAMS))
    for client, told in streams.items():
        stale_widgets = [one for one in client.widgets if timeline.concerns(told[0][1], one)]
        expect(f"stale widgets of {client.name}", stale_widgets, client.widgets)

    # A change of all stations, which comes after everything that the first one causes.
    last = post({"entity": "Station", "properties": ["name"]})[2]
    wait(streams | other_streams, last)
    for client, told in (streams | other_streams).items():
        sequences = [claims["seq"] for _, claims in told]
        if client.is_resumed:  # A stream that broke may repeat what the client had not confirmed.
            sequences = sorted(set(sequences))
        expect(f"notifications of {client.name}", sequences,
               [sequence, last] if client in streams else [last])
    signatures = len({told[0][1]["jti"] for told in streams.values()})
    print(f"one notification on each stream, none on {len(other_streams)} of another station; "
          f"signatures: {signatures}")


main()
