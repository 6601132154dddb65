#!/usr/bin/env python3
"""A stock board: 5,000 symbols, prices in batches, and who is notified of which.

usage: Deploy/examples/stocks.py

The prices of 500 symbols change 20 times. Each of 250 people has six widgets, which together show 20
symbols, so that every symbol is on a widget. Then each person's client polls: precisely the widgets
that show a changed symbol have to be stale. A trader follows 30 symbols on a stream, where a symbol's
prices within a second become one notification. A phone with the same symbols is pushed to, if the
gateway has a key for APNs: once in `push.interval`, within a budget.
"""
import concurrent.futures
import random
import threading
import time
import uuid

import timeline
from timeline import Client, ask, expect, widget

SYMBOLS = [f"S{number:04}" for number in range(5_000)]
ROUNDS, CHANGED, EACH = 20, 500, 20
BOARD = "com.example.stocks.board"


def board(*symbols):
    return widget(BOARD, "systemLarge" if len(symbols) > 1 else "systemSmall", symbols=list(symbols))


def symbols(claims):
    """The symbols that a notification names; one that names none would concern every board."""
    return [entry["parameters"]["symbols"] for entry in claims["reload"] if entry["kind"] == BOARD]


def follow(trader, told, news):
    for claims in trader.follow():
        with news:
            told.append(claims)
            news.notify()


def main():
    timeline.put_catalog(__file__)
    Client.remove_all()
    random.seed(5_000)
    owned = random.sample(SYMBOLS, len(SYMBOLS))
    portfolios = [owned[at:at + EACH] for at in range(0, len(owned), EACH)]

    def register(number):
        five, large = portfolios[number][:5], portfolios[number][5:]
        return Client(f"person-{number}", [board(*large), *map(board, five)])

    with concurrent.futures.ThreadPoolExecutor(8) as workers:
        people = list(workers.map(register, range(len(portfolios))))
        prices = random.sample(SYMBOLS, CHANGED)
        watched = set(prices[:6] + [one for one in owned if one not in prices][:24])
        market = widget("com.example.stocks.market", "accessoryInline")
        trader = Client("trader", [board(*sorted(watched)), market])
        phone = Client(f"phone-{uuid.uuid4()}", [board(*sorted(watched))], [{
            "type": "apns", "pushType": "widgets", "token": "5" * 64, "environment": "sandbox"}])
        told, news = [], threading.Condition()
        timeline.beside(follow, trader, told, news)
        trader.opened.wait()

        began, sequence = time.monotonic(), 0
        for _ in range(ROUNDS):
            before = sequence
            answer = timeline.post(timeline.events("/exchange", [
                {"entity": "Stock", "id": symbol, "properties": ["price"]}
                for symbol in random.sample(prices, CHANGED)]))
            expect("accepted", (answer["accepted"], answer["unmatched"]), (CHANGED, 0))
            sequence = answer["sequence"]
        seconds = time.monotonic() - began
        print(f"{ROUNDS * CHANGED} prices of {CHANGED} symbols of {len(SYMBOLS)} in {ROUNDS} batches: "
              f"{seconds:.1f} s, {ROUNDS * CHANGED / seconds:.0f} a second")

        # The sequence of the last notification of each symbol, whose last price was in the last batch.
        def latest():
            return {symbol: claims["seq"] for claims in told for symbol in symbols(claims)}

        with news:
            news.wait_for(lambda: len(latest()) >= 6 and min(latest().values()) > before)
        # The second of these comes at the end of a window that began after those of all prices: what
        # the trader was not notified of by then, it never is.
        closed = [timeline.post(timeline.events("/exchange", [{"entity": "Market"}]))["sequence"]
                  for _ in range(2)][-1]
        with news:
            news.wait_for(lambda: told[-1]["seq"] >= closed)
        names = [symbol for claims in told for symbol in symbols(claims)]
        expect("symbols of the trader's notifications", set(names), watched & set(prices))
        many = max(names.count(name) for name in set(names))
        if many > ROUNDS:
            raise SystemExit(f"{many} notifications of a symbol that changed {ROUNDS} times")
        print(f"trader, 30 symbols: {6 * ROUNDS} prices, {len(names)} notifications of 6 symbols")

        def stale(person):
            return [one for one in person.widgets if set(one["parameters"]["symbols"]) & set(prices)]

        polled = list(workers.map(Client.poll, people))
    for person, got in zip(people, polled):
        expect(f"stale widgets of {person.name}", got, stale(person))
    widgets = sum(len(person.widgets) for person in people)
    print(f"{len(people)} people: {sum(map(len, polled))} of {widgets} widgets are stale, no other; "
          f"{polled.count([])} people have none")
    attempts, explanation = f"/attempts?client={phone.name}", f"/clients/{phone.name}/explain"
    while not (pushes := ask("GET", attempts)["attempts"]) and ask("GET", explanation)["addresses"]:
        time.sleep(0.1)  # Attempts are written once a second. Without a key for APNs there are none.
    if pushes:
        state = ask("GET", explanation)
        held, budget = state["widgets"][0], state["addresses"][0]["budget"]
        print(f"phone, the same 30 symbols: {len(pushes)} push, {pushes[0]['outcome']}; later prices "
              f"{held['outcome']} by the {held['reason']}; "
              f"{budget['left']} of {budget['burst']} pushes are left")


main()
