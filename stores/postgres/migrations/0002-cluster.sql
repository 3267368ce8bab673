-- The nodes of a cluster are the rows of `nodes` that have a slot. Each draws from the sequence of its slot as long as it lives: a
-- sequence leaves no dead rows behind, however long somebody keeps a snapshot.
create unique index nodes_slots on nodes (slot) where slot is not null;
create unique index nodes_named on nodes (name) where slot is not null;

create sequence heartbeat_0;
create sequence heartbeat_1;
create sequence heartbeat_2;
create sequence heartbeat_3;
create sequence heartbeat_4;
create sequence heartbeat_5;
create sequence heartbeat_6;
create sequence heartbeat_7;
create sequence heartbeat_8;
create sequence heartbeat_9;
create sequence heartbeat_10;
create sequence heartbeat_11;
create sequence heartbeat_12;
create sequence heartbeat_13;
create sequence heartbeat_14;
create sequence heartbeat_15;
