//! Whether all tables of a store are there, and whether the role may use them: found out at the start, not by the first request.

use crate::fault::Failure;
use crate::migrate;
use crate::session::Session;

/// For each table and sequence by name: whether it is there, and whether the role may use it.
const ASKED: &str =
    "select w.name, c.oid is not null, case when c.relkind = 'S' then has_sequence_privilege(c.oid, 'usage')
        else has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
            and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete') end
    from unnest($1::text[]) with ordinality as w (name, place)
    left join pg_catalog.pg_class c on c.relname = w.name
        and c.relnamespace = (select oid from pg_catalog.pg_namespace where nspname = $2)
    order by w.place";

/// What a role needs that has a store and may not make tables: statements with `ROLE` in place of its name.
pub(crate) fn grants(schema: &str) -> Vec<String> {
    vec![
        format!("grant usage on schema {schema} to ROLE;"),
        format!("grant select, insert, update, delete on all tables in schema {schema} to ROLE;"),
        format!("grant usage, select, update on all sequences in schema {schema} to ROLE;"),
    ]
}

/// What a store of the current format lacks, each with what to do.
pub(crate) async fn lacks(session: &Session, schema: &str, role: &str) -> Result<Vec<String>, Failure> {
    let rows = session.query(ASKED, &[&migrate::relations(), &schema]).await?;
    let mut why = Vec::new();
    let missing = rows.iter().find(|row| !row.get::<_, bool>(1));
    if let Some(row) = missing {
        why.push(format!(
            "the store in the schema `{schema}` has lost `{}`: put a backup back, or name another schema with `store.schema`",
            row.get::<_, &str>(0)
        ));
    }
    let refused = rows.iter().find(|row| row.get::<_, Option<bool>>(2) == Some(false));
    if let Some(row) = refused {
        let grants = grants(schema).into_iter().skip(1);
        let grants: Vec<String> = grants
            .map(|grant| format!("`{}`", grant.replace("ROLE;", role)))
            .collect();
        why.push(format!(
            "the role `{role}` may not read and write `{}` in the schema `{schema}`: {}",
            row.get::<_, &str>(0),
            grants.join(" and ")
        ));
    }
    Ok(why)
}
