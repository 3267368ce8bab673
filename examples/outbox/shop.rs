//! Writes orders and starts their flows, each in one transaction.
//! Usage: shop URL FIRST COUNT [rollback | savepoint | prepare | again]

use std::error::Error;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, GenericClient, NoTls};

/// Behind a pooler in transaction mode, statements must not be prepared: `query_typed` prepares none that stays.
async fn start(shop: &impl GenericClient, number: i64, name: &str) -> Result<(), Box<dyn Error>> {
    let input = format!(r#"{{"id": {number}, "amount": {}}}"#, 10 * number);
    let call = "select starbridge.start_execution('shop', $1::text::jsonb, name => $2)::text";
    let rows = shop
        .query_typed(call, &[(&input, Type::TEXT), (&name, Type::TEXT)])
        .await?;
    println!("{name}: {}", rows[0].get::<_, String>(0));
    Ok(())
}

async fn order(shop: &impl GenericClient, number: i64) -> Result<(), Box<dyn Error>> {
    let order = "insert into orders (id, amount) values ($1, $2)";
    shop.query_typed(order, &[(&number, Type::INT8), (&(10 * number), Type::INT8)])
        .await?;
    start(shop, number, &format!("order-{number}")).await
}

async fn sell(shop: &mut Client, number: i64, end: &str) -> Result<(), Box<dyn Error>> {
    let mut whole = shop.transaction().await?;
    match end {
        // The name is taken: nothing starts a second time.
        "again" => start(&whole, number, &format!("order-{number}")).await?,
        "prepare" => {
            whole.batch_execute("set local starbridge.wake = off").await?;
            order(&whole, number).await?;
            whole
                .batch_execute(&format!("prepare transaction 'order-{number}'"))
                .await?;
            // The transaction is not this connection's any more: this ends nothing.
            whole.commit().await?;
            shop.batch_execute(&format!("commit prepared 'order-{number}'")).await?;
            return Ok(());
        }
        "savepoint" => {
            order(&whole, number).await?;
            // The order stays, its gift does not.
            let part = whole.savepoint("gift").await?;
            start(&part, number, &format!("gift-{number}")).await?;
            part.rollback().await?;
        }
        _ => order(&whole, number).await?,
    }
    match end {
        "rollback" => whole.rollback().await?,
        _ => whole.commit().await?,
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, first, count, rest @ ..] = arguments.as_slice() else {
        return Err("usage: shop URL FIRST COUNT [rollback | savepoint | prepare | again]".into());
    };
    let (first, count): (i64, i64) = (first.parse()?, count.parse()?);
    let end = rest.first().map_or("commit", String::as_str);
    let (mut shop, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    for number in first..first + count {
        sell(&mut shop, number, end).await?;
    }
    Ok(())
}
