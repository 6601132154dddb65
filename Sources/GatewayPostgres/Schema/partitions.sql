-- Partitions, their owners and what these write. A node has one connection for all of it: the last
-- one that called `attach`. Statements of others are refused, also when they arrive late.
--
-- The row in node_seen protects the owner rows of its node: whoever takes one away locks it first,
-- and a flush shares it instead of locking every owner row.

-- Makes this connection the one of the node. Another process's partitions are released, and it is
-- refused from here on; without `forced` it is only replaced when its lease has run out.
CREATE FUNCTION attach(process bigint, forced boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE
  n int;
  seen node_seen;
BEGIN
  PERFORM set_config('synchronous_commit', 'on', true);
  SELECT node INTO n FROM node WHERE login = session_user;
  IF NOT FOUND THEN RAISE 'not a node' USING ERRCODE = 'TG004'; END IF;
  INSERT INTO node_seen (node, seen_at, process, session)
    VALUES (n, clock_timestamp(), attach.process, pg_backend_pid()) ON CONFLICT DO NOTHING;
  SELECT * INTO STRICT seen FROM node_seen s WHERE s.node = n FOR UPDATE;
  IF seen.process <> attach.process THEN
    IF NOT forced
      AND seen.until BETWEEN clock_timestamp() AND clock_timestamp() + interval '30 s' THEN
      RAISE 'replaced' USING ERRCODE = 'TG001';
    END IF;
    PERFORM 1 FROM owner o WHERE o.node = n ORDER BY o.part FOR UPDATE;
    UPDATE owner o SET node = NULL WHERE o.node = n;
  END IF;
  UPDATE node_seen s SET process = attach.process, session = pg_backend_pid() WHERE s.node = n;
END $$;

-- Returns the node of this connection and keeps its lease row until the transaction ends.
CREATE FUNCTION attached() RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE n int;
BEGIN
  -- The next statement must see what was committed before the lock.
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE 'isolation' USING ERRCODE = 'TG003';
  END IF;
  SELECT s.node INTO n FROM node_seen s
    WHERE s.node = (SELECT m.node FROM node m WHERE m.login = session_user)
      AND s.session = pg_backend_pid() FOR SHARE;
  IF NOT FOUND THEN RAISE 'replaced' USING ERRCODE = 'TG001'; END IF;
  RETURN n;
END $$;

-- Renews the node's lease. Returns the parts that it still owns, all nodes with the count of their
-- renewals, and those among them that want parts and whose lease runs.
CREATE FUNCTION renew(
  serves boolean, load jsonb, OUT o_node int, OUT o_parts int[], OUT o_generations bigint[],
  OUT o_nodes int[], OUT o_beats bigint[], OUT o_serving int[]
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'on', true);
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE 'isolation' USING ERRCODE = 'TG003';
  END IF;
  UPDATE node_seen s SET seen_at = clock_timestamp(), beat = s.beat + 1,
      until = clock_timestamp() + interval '10 s', serves = renew.serves, load = renew.load
    WHERE s.node = (SELECT m.node FROM node m WHERE m.login = session_user)
      AND s.session = pg_backend_pid()
    RETURNING s.node INTO o_node;
  IF NOT FOUND THEN RAISE 'replaced' USING ERRCODE = 'TG001'; END IF;
  SELECT coalesce(array_agg(o.part ORDER BY o.part), '{}'),
      coalesce(array_agg(o.generation ORDER BY o.part), '{}')
    INTO o_parts, o_generations FROM owner o WHERE o.node = o_node;
  SELECT array_agg(s.node), array_agg(s.beat),
      coalesce(array_agg(s.node) FILTER (WHERE s.serves AND s.until
        BETWEEN clock_timestamp() AND clock_timestamp() + interval '30 s'), '{}')
    INTO o_nodes, o_beats, o_serving FROM node_seen s;
END $$;

-- Takes those of `parts` that are released, or whose owner is among `nodes`, has renewed as often
-- as `beats` says, and has a lease that has run out or lies so far ahead that the server's clock was
-- set back. The caller names nodes that did not renew for as long as an owner pushes without:
-- the server's clock alone may be wrong, and so may the caller's list.
CREATE FUNCTION take(parts int[], nodes int[], beats bigint[])
RETURNS TABLE (o_part int, o_generation bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE
  n int;
  dead int[];
BEGIN
  PERFORM set_config('synchronous_commit', 'on', true);
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE 'isolation' USING ERRCODE = 'TG003';
  END IF;
  IF (SELECT closed FROM log_identity) THEN RAISE 'closed' USING ERRCODE = 'TG005'; END IF;
  SELECT node INTO n FROM node WHERE login = session_user;
  IF NOT FOUND THEN RAISE 'not a node' USING ERRCODE = 'TG004'; END IF;
  -- Nothing is written, and no commit waits, where there is nothing to take.
  IF NOT EXISTS (
    SELECT FROM owner o WHERE o.part = ANY (parts) AND (o.node IS NULL OR o.node = ANY (nodes)))
  THEN RETURN; END IF;
  -- The leases first, so that none is renewed and nothing flushed meanwhile; then the parts, in
  -- order.
  PERFORM 1 FROM node_seen s WHERE s.node = n OR s.node = ANY (nodes) ORDER BY s.node FOR UPDATE;
  IF NOT EXISTS (SELECT FROM node_seen s WHERE s.node = n AND s.session = pg_backend_pid()) THEN
    RAISE 'replaced' USING ERRCODE = 'TG001';
  END IF;
  dead := ARRAY(
    SELECT s.node FROM node_seen s JOIN unnest(nodes, beats) u(node, beat)
      ON s.node = u.node AND s.beat = u.beat
    WHERE s.node <> n AND (s.until
      BETWEEN clock_timestamp() AND clock_timestamp() + interval '30 s') IS NOT TRUE);
  PERFORM 1 FROM owner o
    WHERE o.part = ANY (parts) AND (o.node IS NULL OR o.node = ANY (dead))
    ORDER BY o.part FOR UPDATE;
  RETURN QUERY UPDATE owner o SET node = n, generation = o.generation + 1
    WHERE o.part = ANY (parts) AND (o.node IS NULL OR o.node = ANY (dead))
    RETURNING o.part, o.generation;
END $$;

-- Releases parts at the generations that the node owns them at.
CREATE FUNCTION release(parts int[], generations bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE n int;
BEGIN
  PERFORM set_config('synchronous_commit', 'on', true);
  n := attached();
  PERFORM 1 FROM owner o WHERE o.part = ANY (parts) AND o.node = n ORDER BY o.part FOR UPDATE;
  UPDATE owner o SET node = NULL FROM unnest(parts, generations) u(part, generation)
    WHERE o.part = u.part AND o.generation = u.generation AND o.node = n;
END $$;

-- Writes push state of the parts that the node still owns at the generations it names; returns the
-- other parts. Without a wait for the disk: what is lost can only push again.
CREATE FUNCTION flush(
  owned int[], generations bigint[], clears bigint[],
  parts int[], apps text[], clients text[], tolds bigint[], oweds boolean[], payloads bytea[]
) RETURNS TABLE (o_lost int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE
  n int;
  held int[];
  written int[];
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  n := attached();
  IF (SELECT closed FROM log_identity) THEN RAISE 'closed' USING ERRCODE = 'TG005'; END IF;
  -- Without a lock: see above.
  held := ARRAY(
    SELECT o.part FROM owner o JOIN unnest(owned, generations) u(part, generation)
      ON o.part = u.part AND o.generation = u.generation
    WHERE o.node = n);
  -- Nearly all rows exist. INSERT ... ON CONFLICT would lock each before it updates it, for the same
  -- time and 1.4 times the WAL.
  WITH changed AS (
    UPDATE push_state s SET told = u.told, owed = u.owed, payload = u.payload
    FROM unnest(parts, apps, clients, tolds, oweds, payloads)
      WITH ORDINALITY u(part, app, client, told, owed, payload, place)
    WHERE s.part = u.part AND s.app = u.app AND s.client = u.client AND s.told <= u.told
      AND u.part = ANY (held)
    RETURNING u.place::int)
  SELECT coalesce(array_agg(c.place), '{}') INTO written FROM changed c;
  IF cardinality(written) < cardinality(parts) THEN
    INSERT INTO push_state
      SELECT u.part, u.app, u.client, u.told, u.owed, u.payload
      FROM unnest(parts, apps, clients, tolds, oweds, payloads)
        WITH ORDINALITY u(part, app, client, told, owed, payload, place)
      WHERE u.part = ANY (held) AND NOT u.place = ANY (written)
      ON CONFLICT (part, app, client) DO NOTHING;
  END IF;
  UPDATE owner o SET clear = u.clear FROM unnest(owned, clears) u(part, clear)
    WHERE o.part = u.part AND o.part = ANY (held) AND o.clear < u.clear;
  RETURN QUERY SELECT part FROM unnest(owned) part WHERE NOT part = ANY (held);
END $$;

-- Flushes and commits within the server, after the last byte of the call came: a node that stops
-- holds no lease row that others wait for. Neither SECURITY DEFINER nor SET: with them it could not
-- COMMIT.
CREATE PROCEDURE commit_flush(
  owned int[], generations bigint[], clears bigint[],
  parts int[], apps text[], clients text[], tolds bigint[], oweds boolean[], payloads bytea[],
  INOUT o_lost int[]
) LANGUAGE plpgsql AS $$
BEGIN
  o_lost := ARRAY(
    SELECT f.o_lost FROM tg.flush(
      owned, generations, clears, parts, apps, clients, tolds, oweds, payloads) f);
  COMMIT;
END $$;

-- Writes how far the node's clients have confirmed, and whether they have a stream here.
CREATE FUNCTION hear(
  parts int[], apps text[], clients text[], opens boolean[], uptos bigint[]
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE seen node_seen;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  -- Without a lock: a late row can only push again.
  SELECT s.* INTO seen FROM node_seen s
    WHERE s.node = (SELECT m.node FROM node m WHERE m.login = session_user)
      AND s.session = pg_backend_pid();
  IF NOT FOUND THEN RAISE 'replaced' USING ERRCODE = 'TG001'; END IF;
  INSERT INTO heard AS h
    SELECT u.part, u.app, u.client, seen.node, seen.process, u.open, u.upto, clock_timestamp()
    FROM unnest(parts, apps, clients, opens, uptos) u(part, app, client, open, upto)
    ORDER BY u.part, u.app, u.client
    ON CONFLICT (part, app, client, node) DO UPDATE
    SET process = excluded.process, open = excluded.open,
      upto = greatest(h.upto, excluded.upto), at = excluded.at;
END $$;

-- Deletes a part's rows of `heard` that are a day old, but for streams that are still open.
CREATE FUNCTION forget_heard(parts int[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  DELETE FROM heard d USING (
    SELECT h.part, h.app, h.client, h.node FROM heard h
    WHERE h.part = ANY (parts) AND h.at < clock_timestamp() - interval '1 day'
      AND NOT (h.open AND EXISTS (
        SELECT FROM node_seen s WHERE s.node = h.node AND s.process = h.process
          AND s.until BETWEEN clock_timestamp() AND clock_timestamp() + interval '30 s'))
    FOR UPDATE SKIP LOCKED) o
  WHERE d.part = o.part AND d.app = o.app AND d.client = o.client AND d.node = o.node;
END $$;

-- Puts a provider token in force unless one is, and returns the one in force. A token whose end
-- lies further ahead than its lifetime was made before the server's clock was set back.
CREATE FUNCTION offer_token(
  key_name text, offered bytea, seconds int,
  OUT o_wrapped bytea, OUT o_milliseconds bigint, OUT o_is_own boolean
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE lifetime interval := make_interval(secs => seconds);
BEGIN
  PERFORM set_config('synchronous_commit', 'on', true);
  IF NOT EXISTS (SELECT FROM node m WHERE m.login = session_user) THEN
    RAISE 'not a node' USING ERRCODE = 'TG004';
  END IF;
  INSERT INTO secret AS s (kind, name, not_before, not_after, wrapped)
    VALUES ('provider-token', key_name, clock_timestamp(), clock_timestamp() + lifetime, offered)
    ON CONFLICT (kind, name) DO UPDATE
    SET not_before = excluded.not_before, not_after = excluded.not_after,
      wrapped = excluded.wrapped
    WHERE s.not_after < clock_timestamp() OR s.not_after > clock_timestamp() + lifetime + interval '30 s';
  o_is_own := FOUND;
  SELECT s.wrapped, (extract(epoch FROM s.not_after - clock_timestamp()) * 1000)::bigint
    INTO STRICT o_wrapped, o_milliseconds
    FROM secret s WHERE s.kind = 'provider-token' AND s.name = key_name;
END $$;
