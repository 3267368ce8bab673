//! Writes orders and starts their flows, each in one transaction. It needs the crates `tokio` and `tokio-postgres`.
//! Usage: shop URL FIRST COUNT [rollback]

use std::error::Error;
use tokio_postgres::NoTls;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, first, count, end @ ..] = words.as_slice() else {
        return Err("usage: shop URL FIRST COUNT [rollback]".into());
    };
    let (mut shop, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    let first: i64 = first.parse()?;
    for number in first..first + count.parse::<i64>()? {
        let amount = 10 * number;
        let order = shop.transaction().await?;
        let insert = "insert into orders (id, amount) values ($1, $2)";
        order.execute(insert, &[&number, &amount]).await?;
        let input = format!("{{\"id\": {number}, \"amount\": {amount}}}");
        let name = format!("order-{number}");
        let start = "select starbridge.start_execution('shop', $1::text::jsonb, name => $2)::text";
        let started = order.query_one(start, &[&input, &name]).await?;
        println!("order {number}: {}", started.get::<_, String>(0));
        match end {
            [word] if word == "rollback" => order.rollback().await?,
            _ => order.commit().await?,
        }
    }
    Ok(())
}
