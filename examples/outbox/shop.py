"""Writes orders and starts their flows, each in one transaction.

Usage: shop.py URL FIRST COUNT [rollback | savepoint | prepare | again]
"""

import sys

import psycopg
from psycopg.types.json import Jsonb


def start(shop, number, name):
    row = shop.execute(
        "select starbridge.start_execution('shop', %s, name => %s)",
        (Jsonb({"id": number, "amount": 10 * number}), name),
    ).fetchone()
    print(f"{name}: {row[0]}")


def order(shop, number):
    shop.execute("insert into orders (id, amount) values (%s, %s)", (number, 10 * number))
    start(shop, number, f"order-{number}")


def sell(shop, number, end):
    if end == "prepare":
        shop.autocommit = False
        shop.tpc_begin(shop.xid(1, f"order-{number}", "shop"))
        shop.execute("set local starbridge.wake = off")
        order(shop, number)
        shop.tpc_prepare()
        shop.tpc_commit()
        return
    with shop.transaction() as whole:
        if end == "again":
            # The name is taken: nothing starts a second time.
            start(shop, number, f"order-{number}")
            return
        order(shop, number)
        if end == "savepoint":
            # The order stays, its gift does not.
            with shop.transaction() as part:
                start(shop, number, f"gift-{number}")
                raise psycopg.Rollback(part)
        if end == "rollback":
            raise psycopg.Rollback(whole)


url, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
end = sys.argv[4] if len(sys.argv) > 4 else "commit"
# Behind a pooler in transaction mode, statements must not be prepared.
with psycopg.connect(url, prepare_threshold=None, autocommit=True) as shop:
    for number in range(first, first + count):
        sell(shop, number, end)
