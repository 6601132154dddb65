-- The rights of the roles, after all that they are for: a node may call every function, and read.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA tg FROM PUBLIC;
REVOKE ALL ON ALL PROCEDURES IN SCHEMA tg FROM PUBLIC;
GRANT USAGE ON SCHEMA tg TO tg_node, tg_observer;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tg TO tg_node;
GRANT EXECUTE ON ALL PROCEDURES IN SCHEMA tg TO tg_node;
-- Only as a part of an append, which writes the records of the rows.
REVOKE EXECUTE ON FUNCTION write_registrations FROM tg_node;
-- Only an operator's, who is the owner.
REVOKE EXECUTE ON FUNCTION moving, begin_move, move_log, move_registrations, move_states,
  move_catalogs, move_epochs, move_secret, finish_move FROM tg_node;
GRANT SELECT ON migration, log_identity, log_floor, log, epoch, event, node, node_seen, reservation,
  catalog, registration, live_registration, push_address, push_state, heard, owner, push_attempt,
  secret, snapshot, snapshot_head TO tg_node;
-- Status, without payloads.
GRANT SELECT ON migration, log_identity, log_floor, node, node_seen, reservation, owner, snapshot_head
  TO tg_observer;
GRANT SELECT (last, first, node, batch, chain, at) ON log TO tg_observer;
GRANT SELECT (kind, name, not_before, not_after) ON secret TO tg_observer;
