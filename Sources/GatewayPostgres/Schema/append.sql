-- Takes the node over: statements of its older connections are refused from here on, and one that
-- still runs is waited for. The commit lies behind everything that was visible, so what is visible
-- afterwards is durable.
CREATE FUNCTION fence(OUT o_node int, OUT o_generation bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'on', true);
  UPDATE node SET generation = generation + 1 WHERE login = session_user
    RETURNING node, generation INTO o_node, o_generation;
  IF NOT FOUND THEN RAISE 'not a node' USING ERRCODE = 'TG004'; END IF;
END $$;

-- Registrations to put or remove, at most 100, each by the revision that it was decided from.
CREATE TYPE registration_writes AS (
  parts int[], apps text[], clients text[],
  bases bigint[],                     -- 0: the client has no row, or one from before `removals`
  removals bigint[],                  -- the sequence of the app's last removal; 0: never removed
  revisions bigint[], digests bigint[],
  attrs text[], tokens text[],        -- arrays of uuid, as text
  days int[],                         -- 0: the client was not seen
  payloads bytea[]                    -- NULL: the registration is removed
);
-- Push addresses that get another owner; `places` are 1 for the first of the registrations.
CREATE TYPE address_claims AS (
  tokens uuid[], places int[],
  parts int[], apps text[], clients text[]   -- the owner as probed; part -1: none
);
-- Catalogs and removals of apps; `places` are 1 for the batch's first sequence.
CREATE TYPE catalog_writes AS (
  apps text[], places int[],
  payloads bytea[]                    -- NULL: the app is removed
);

-- Writes the rows of registrations and their push addresses. Rows are locked in the order of their
-- keys, then addresses in the order of their tokens, so that two nodes do not block each other.
CREATE FUNCTION write_registrations(probed bigint, w registration_writes, c address_claims)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE
  total int := cardinality(w.clients);
  written int := 0;
  n int;
  released uuid[];
  released_of int[];
BEGIN
  IF total > 100 OR cardinality(w.parts) <> total OR cardinality(w.apps) <> total
    OR cardinality(w.bases) <> total OR cardinality(w.removals) <> total
    OR cardinality(w.revisions) <> total OR cardinality(w.digests) <> total
    OR cardinality(w.attrs) <> total OR cardinality(w.tokens) <> total
    OR cardinality(w.days) <> total OR cardinality(w.payloads) <> total THEN
    RAISE 'arguments' USING ERRCODE = '22023';
  END IF;
  -- The addresses that the rows have and will not have any more.
  SELECT coalesce(array_agg(t.token), '{}'), coalesce(array_agg(o.n::int), '{}')
    INTO released, released_of
    FROM (
      SELECT u.n, u.tokens, u.payload, r.tokens AS present
      FROM unnest(w.parts, w.apps, w.clients, w.tokens, w.payloads) WITH ORDINALITY
        u(part, app, client, tokens, payload, n)
      JOIN registration r ON r.part = u.part AND r.app = u.app AND r.client = u.client
      ORDER BY r.part, r.app, r.client FOR UPDATE OF r
    ) o, unnest(o.present) t(token)
    WHERE o.payload IS NULL OR t.token <> ALL (o.tokens::uuid[]);

  IF array_position(w.payloads, NULL) IS NOT NULL THEN
    DELETE FROM registration r
      USING unnest(w.parts, w.apps, w.clients, w.bases, w.payloads)
        u(part, app, client, base, payload)
      WHERE u.payload IS NULL AND r.part = u.part AND r.app = u.app AND r.client = u.client
        AND r.revision = u.base;
    GET DIAGNOSTICS n = ROW_COUNT;
    written := written + n;
  END IF;
  UPDATE registration r SET revision = u.revision, seq = probed, digest = u.digest,
      attrs = u.attrs::uuid[], tokens = u.tokens::uuid[],
      updated_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
      seen_day = greatest(r.seen_day, u.day), payload = u.payload
    FROM unnest(w.parts, w.apps, w.clients, w.bases, w.removals, w.revisions, w.digests, w.attrs,
      w.tokens, w.days, w.payloads)
      u(part, app, client, base, removal, revision, digest, attrs, tokens, day, payload)
    WHERE u.payload IS NOT NULL AND r.part = u.part AND r.app = u.app AND r.client = u.client
      AND (r.revision = u.base OR u.base = 0 AND r.seq < u.removal);
  GET DIAGNOSTICS n = ROW_COUNT;
  written := written + n;
  IF written < total THEN
    INSERT INTO registration
      SELECT u.part, u.app, u.client, u.revision, probed, u.digest, u.attrs::uuid[],
        u.tokens::uuid[], (extract(epoch FROM clock_timestamp()) * 1000)::bigint, u.day, u.payload
      FROM unnest(w.parts, w.apps, w.clients, w.bases, w.revisions, w.digests, w.attrs, w.tokens,
        w.days, w.payloads)
        u(part, app, client, base, revision, digest, attrs, tokens, day, payload)
      WHERE u.base = 0 AND u.payload IS NOT NULL
      ORDER BY u.part, u.app, u.client ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS n = ROW_COUNT;
    written := written + n;
  END IF;
  IF written <> total THEN RAISE 'raced' USING ERRCODE = 'TG002'; END IF;

  IF cardinality(released) = 0 AND coalesce(cardinality(c.tokens), 0) = 0 THEN RETURN; END IF;
  PERFORM 1 FROM push_address p WHERE p.token = ANY (released || c.tokens)
    ORDER BY p.token FOR UPDATE;
  UPDATE push_address p
    SET part = w.parts[u.place], app = w.apps[u.place], client = w.clients[u.place]
    FROM unnest(c.tokens, c.places, c.parts, c.apps, c.clients) u(token, place, part, app, client)
    WHERE p.token = u.token AND p.part = u.part AND p.app = u.app AND p.client = u.client;
  GET DIAGNOSTICS written = ROW_COUNT;
  INSERT INTO push_address
    SELECT u.token, w.parts[u.place], w.apps[u.place], w.clients[u.place]
    FROM unnest(c.tokens, c.places, c.parts) u(token, place, part) WHERE u.part < 0
    ORDER BY u.token ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS n = ROW_COUNT;
  IF written + n <> coalesce(cardinality(c.tokens), 0) THEN
    RAISE 'raced' USING ERRCODE = 'TG002';
  END IF;
  DELETE FROM push_address p USING unnest(released, released_of) u(token, n)
    WHERE p.token = u.token AND p.part = w.parts[u.n] AND p.app = w.apps[u.n]
      AND p.client = w.clients[u.n];
END $$;

-- Appends a batch of k records. `probed` is the head at which the node looked up what the batch is
-- decided by; `places` are 1 for the batch's first sequence; `apps` are all apps of the batch.
CREATE FUNCTION append(
  g bigint, b bigint, id bytea, k bigint, probed bigint, keys uuid[], digests bigint[],
  places int[], records bytea, apps text[] DEFAULT '{}', catalogs catalog_writes DEFAULT NULL,
  registrations registration_writes DEFAULT NULL, claims address_claims DEFAULT NULL
) RETURNS TABLE (o_last bigint, o_chain bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE
  l bigint;
  c bytea;
  n int;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE 'isolation' USING ERRCODE = 'TG003';
  END IF;
  PERFORM set_config('synchronous_commit', 'on', true);   -- whatever the login's default is
  SELECT node INTO n FROM node WHERE login = session_user AND generation = g FOR SHARE;
  IF NOT FOUND THEN RAISE 'fenced' USING ERRCODE = 'TG001'; END IF;
  IF k < 1 OR length(id) <> 16 OR cardinality(keys) <> cardinality(digests)
    OR cardinality(keys) <> cardinality(places) THEN
    RAISE 'arguments' USING ERRCODE = '22023';
  END IF;
  -- Before the lock, which must stay short.
  IF cardinality(registrations.clients) > 0 THEN
    PERFORM write_registrations(probed, registrations, claims);
  END IF;
  PERFORM 1 FROM log_lock FOR UPDATE;                     -- the order
  IF (SELECT closed FROM log_identity) THEN RAISE 'closed' USING ERRCODE = 'TG005'; END IF;
  -- A new snapshot, after the lock.
  SELECT t.last, t.chain INTO STRICT l, c FROM log t ORDER BY t.last DESC LIMIT 1;
  PERFORM 1 FROM event e WHERE e.seq > probed AND e.key = ANY (keys);
  IF FOUND THEN RAISE 'raced' USING ERRCODE = 'TG002'; END IF;
  -- A catalog is compared with the one it replaces; nothing of an app is written behind a removal
  -- that it was not decided by.
  IF (SELECT max(t.seq) FROM catalog t) > probed THEN     -- one look, however many apps
    PERFORM 1 FROM catalog t WHERE t.seq > probed AND t.app = ANY (apps);
    IF FOUND THEN RAISE 'raced' USING ERRCODE = 'TG002'; END IF;
  END IF;
  c := substr(sha256(c || id), 1, 16);
  INSERT INTO log VALUES (
    l + k, l + 1, n, b, c, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, records);
  INSERT INTO event SELECT u.key, l + u.place, u.digest
    FROM unnest(keys, digests, places) u(key, digest, place);
  IF cardinality(catalogs.apps) > 0 THEN
    INSERT INTO catalog SELECT u.app, l + u.place, u.payload
      FROM unnest(catalogs.apps, catalogs.places, catalogs.payloads) u(app, place, payload);
    INSERT INTO removal SELECT u.app, l + u.place, 0
      FROM unnest(catalogs.apps, catalogs.places, catalogs.payloads) u(app, place, payload)
      WHERE u.payload IS NULL;
  END IF;
  RETURN QUERY SELECT l + k, c;
END $$;

-- Appends and commits within the server, after the last byte of the call came: a node that stops
-- never holds the lock. Neither SECURITY DEFINER nor SET: with them it could not COMMIT.
CREATE PROCEDURE commit_append(
  g bigint, b bigint, id bytea, k bigint, probed bigint, keys uuid[], digests bigint[],
  places int[], records bytea, apps text[], catalogs catalog_writes,
  registrations registration_writes, claims address_claims, INOUT o_last bigint,
  INOUT o_chain bytea
) LANGUAGE plpgsql AS $$
BEGIN
  SELECT a.o_last, a.o_chain INTO o_last, o_chain
    FROM tg.append(g, b, id, k, probed, keys, digests, places, records, apps, catalogs,
      registrations, claims) a;
  COMMIT;
END $$;

-- Deletes rows of a removed app, at most `portion` and of at most 64 parts; returns whether there
-- may be more. Without a wait for the disk: what is lost is deleted again, and is void anyway.
CREATE FUNCTION delete_removed(portion int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE
  the removal%ROWTYPE;
  clients text[];
  tokens uuid[];
  budget int := portion;
  p int;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  -- One that another node works on is left to it.
  SELECT * INTO the FROM removal ORDER BY seq LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN false; END IF;
  p := the.part;
  WHILE p < least(the.part + 64, 4096) LOOP
    SELECT coalesce(array_agg(o.client), '{}') INTO clients FROM (
      SELECT r.client FROM registration r
      WHERE r.part = p AND r.app = the.app AND r.seq < the.seq
      ORDER BY r.client LIMIT budget FOR UPDATE) o;
    SELECT coalesce(array_agg(t.token), '{}') INTO tokens FROM registration r, unnest(r.tokens) t(token)
      WHERE r.part = p AND r.app = the.app AND r.client = ANY (clients);
    PERFORM 1 FROM push_address a WHERE a.token = ANY (tokens) ORDER BY a.token FOR UPDATE;
    DELETE FROM push_address a WHERE a.token = ANY (tokens)
      AND a.part = p AND a.app = the.app AND a.client = ANY (clients);
    DELETE FROM push_state s WHERE s.part = p AND s.app = the.app AND s.client = ANY (clients);
    DELETE FROM heard h WHERE h.part = p AND h.app = the.app AND h.client = ANY (clients);
    DELETE FROM registration r
      WHERE r.part = p AND r.app = the.app AND r.client = ANY (clients) AND r.seq < the.seq;
    budget := budget - cardinality(clients);
    EXIT WHEN budget <= 0;
    p := p + 1;
  END LOOP;
  IF p < 4096 THEN
    UPDATE removal SET part = p WHERE app = the.app AND seq = the.seq;
  ELSE
    DELETE FROM removal WHERE app = the.app AND seq = the.seq;
  END IF;
  RETURN EXISTS (SELECT FROM removal);
END $$;
