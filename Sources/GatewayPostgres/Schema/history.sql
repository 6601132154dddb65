-- Voids all cursors once it is known that the end of the log was lost, as after a restored backup:
-- the log gets another id, the epochs of the store that was moved here are void, and `records` are
-- appended, which tell the clients of each app that everything is stale.
--
-- The evidence is a sequence with the tag of its batch, the first four bytes of the chain: a server
-- that has it, or has forgotten the batch, lost nothing. Returns 0 then, 1 if the cursors are void
-- now, and 2 if `lost` is not the id of the log any more: of several nodes that notice, one voids
-- them.
CREATE FUNCTION void_cursors(
  g bigint, b bigint, id bytea, lost uuid, seen bigint, tag bigint, k bigint, records bytea
) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE
  identity log_identity;
  ordinal bigint;
  batch log;
BEGIN
  PERFORM set_config('synchronous_commit', 'on', true);
  -- Two that notice come here one after the other.
  SELECT * INTO identity FROM log_identity FOR UPDATE;
  IF identity.log_id <> lost THEN RETURN 2; END IF;
  SELECT * INTO batch FROM log l WHERE l.last >= seen ORDER BY l.last LIMIT 1;
  IF FOUND AND (batch.first > seen
    OR ('x' || encode(substr(batch.chain, 1, 4), 'hex'))::bit(32)::bigint = tag) THEN
    RETURN 0;
  END IF;
  -- Before the lock of the log, as in appends: every other node has to connect again, and finds the
  -- new id then.
  UPDATE node SET generation = generation + 1 WHERE login <> session_user;
  IF k > 0 THEN PERFORM append(g, b, id, k, 0, '{}', '{}', '{}', records); END IF;
  -- The id begins with the ordinal of the cursors. Clients take the lower of two for the older one.
  ordinal := ('x' || substr(replace(lost::text, '-', ''), 1, 8))::bit(32)::bigint + 1;
  IF ordinal > 4294967295 THEN
    RAISE 'the log has no ordinal left for its next epoch' USING ERRCODE = 'TG007';
  END IF;
  ordinal := least(ordinal + floor(random() * 16777216)::bigint, 4294967295);
  UPDATE log_identity SET log_id = (lpad(to_hex(ordinal), 8, '0')
    || substr(replace(gen_random_uuid()::text, '-', ''), 9))::uuid;
  UPDATE epoch SET is_void = true;
  RETURN 1;
END $$;
