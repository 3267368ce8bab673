-- The shop's own table and role, and the server's role. Run it after `starbridge outbox install`.
create table public.orders (id bigint primary key, amount bigint not null);
create role shop login;
create role flows login;
grant all on public.orders to shop;
grant starbridge_client to shop;
grant starbridge_taker to flows;
