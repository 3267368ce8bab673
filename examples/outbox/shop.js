// Writes orders and starts their flows, each in one transaction.
// Usage: node shop.js URL FIRST COUNT [rollback | savepoint | prepare | again]
const { Client } = require("pg");

async function start(shop, number, name) {
  const input = JSON.stringify({ id: number, amount: 10 * number });
  const started = await shop.query("select starbridge.start_execution('shop', $1, name => $2) as id", [input, name]);
  console.log(`${name}: ${started.rows[0].id}`);
}

async function order(shop, number) {
  await shop.query("insert into orders (id, amount) values ($1, $2)", [number, 10 * number]);
  await start(shop, number, `order-${number}`);
}

async function sell(shop, number, end) {
  await shop.query("begin");
  if (end === "again") {
    // The name is taken: nothing starts a second time.
    await start(shop, number, `order-${number}`);
    return shop.query("commit");
  }
  if (end === "prepare") {
    await shop.query("set local starbridge.wake = off");
  }
  await order(shop, number);
  switch (end) {
    case "rollback":
      return shop.query("rollback");
    case "prepare":
      await shop.query(`prepare transaction 'order-${number}'`);
      return shop.query(`commit prepared 'order-${number}'`);
    case "savepoint":
      // The order stays, its gift does not.
      await shop.query("savepoint gift");
      await start(shop, number, `gift-${number}`);
      await shop.query("rollback to gift");
  }
  return shop.query("commit");
}

async function main() {
  const [url, first, count, end] = process.argv.slice(2);
  const shop = new Client({ connectionString: url });
  await shop.connect();
  for (let number = Number(first); number < Number(first) + Number(count); number++) {
    await sell(shop, number, end);
  }
  await shop.end();
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
