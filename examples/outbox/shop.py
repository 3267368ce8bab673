"""Writes orders and starts their flows, each in one transaction. Usage: shop.py URL FIRST COUNT [rollback]"""

import sys

import psycopg
from psycopg.types.json import Jsonb

url, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

# Behind a pooler in transaction mode, statements must not be prepared.
with psycopg.connect(url, prepare_threshold=None, autocommit=True) as shop:
    for number in range(first, first + count):
        with shop.transaction() as order:
            shop.execute("insert into orders (id, amount) values (%s, %s)", (number, 10 * number))
            row = shop.execute(
                "select starbridge.start_execution('shop', %s, name => %s)",
                (Jsonb({"id": number, "amount": 10 * number}), f"order-{number}"),
            ).fetchone()
            print(f"order {number}: {row[0]}")
            if sys.argv[4:] == ["rollback"]:
                raise psycopg.Rollback(order)
