// Writes orders and starts their flows, each in one transaction. Usage: node shop.js URL FIRST COUNT [rollback]
const { Client } = require("pg");

async function main() {
  const [url, first, count, end] = process.argv.slice(2);
  const shop = new Client({ connectionString: url });
  await shop.connect();
  for (let number = Number(first); number < Number(first) + Number(count); number++) {
    const order = { id: number, amount: 10 * number };
    await shop.query("begin");
    await shop.query("insert into orders (id, amount) values ($1, $2)", [order.id, order.amount]);
    const started = await shop.query("select starbridge.start_execution('shop', $1, name => $2) as id", [
      JSON.stringify(order),
      `order-${number}`,
    ]);
    console.log(`order ${number}: ${started.rows[0].id}`);
    await shop.query(end === "rollback" ? "rollback" : "commit");
  }
  await shop.end();
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
