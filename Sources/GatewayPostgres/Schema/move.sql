-- Moving a store of one node here: an operator's, never a node's. From its begin to its end the log
-- is closed, so no node writes; every portion may be sent again.
CREATE TABLE move (
  one int PRIMARY KEY CHECK (one = 1),
  source bigint NOT NULL,             -- the id of the store
  floor bigint NOT NULL,
  head bigint NOT NULL,
  done boolean NOT NULL DEFAULT false -- kept, so that a repetition is told from another store
);

-- Begins a move into an empty log, or goes on with that of the same source; returns the sequence up to
-- which the log has arrived, and NULL if all of the source was moved here before. `top` is the highest
-- ordinal of the epochs of the source.
CREATE FUNCTION begin_move(src bigint, f bigint, h bigint, top bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE
  m move;
  ordinal bigint;
BEGIN
  PERFORM set_config('synchronous_commit', 'on', true);
  PERFORM 1 FROM owner WHERE part = 4098 FOR UPDATE;      -- no node adds a secret meanwhile
  PERFORM 1 FROM log_lock FOR UPDATE;
  SELECT * INTO m FROM move;
  IF FOUND AND (m.source, m.floor, m.head) = (src, f, h) THEN
    RETURN CASE WHEN NOT m.done THEN (SELECT max(last) FROM log) END;
  ELSIF FOUND AND NOT m.done THEN
    RAISE 'another move is under way' USING ERRCODE = 'TG007';
  END IF;
  IF f < 0 OR h < f OR top < 0 THEN RAISE 'arguments' USING ERRCODE = '22023'; END IF;
  IF (SELECT max(last) FROM log) > 0 OR EXISTS (SELECT FROM catalog)
    OR EXISTS (SELECT FROM registration) OR EXISTS (SELECT FROM secret) OR m.done THEN
    RAISE 'the log is not empty' USING ERRCODE = 'TG007';
  END IF;
  -- The log's id begins with the ordinal of its cursors. Clients take the lower of two cursors for
  -- the older one, so it lies above every epoch of the source, and above the seconds since 1970: a
  -- source that was restored may have forgotten an epoch with such an ordinal. Not far above, so that
  -- there is room for moves to come.
  ordinal := greatest(top, extract(epoch FROM clock_timestamp())::bigint) + 1;
  IF ordinal > 4294967295 THEN
    RAISE 'the store has no ordinal left for its next epoch' USING ERRCODE = 'TG007';
  END IF;
  ordinal := least(ordinal + floor(random() * 16777216)::bigint, 4294967295);
  UPDATE log_identity SET closed = true, log_id = (lpad(to_hex(ordinal), 8, '0')
    || substr(replace(gen_random_uuid()::text, '-', ''), 9))::uuid;
  INSERT INTO move VALUES (1, src, f, h);
  IF f > 0 THEN
    -- The log always has the batch at its floor.
    DELETE FROM log;
    UPDATE log_floor SET floor = f;
    PERFORM slice();
    INSERT INTO log VALUES (f, f, 0, 0, uuid_send(gen_random_uuid()), 0, '');
  END IF;
  RETURN f;
END $$;

-- Keeps the move under way until the transaction ends.
CREATE FUNCTION moving() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
BEGIN
  PERFORM 1 FROM move WHERE NOT done FOR SHARE;
  IF NOT FOUND THEN RAISE 'no move is under way' USING ERRCODE = 'TG007'; END IF;
END $$;

-- Appends batches after `after`; returns the sequence up to which the log has arrived: a portion that
-- is there already, or comes too early, writes nothing. The first record of the portion has place 1.
CREATE FUNCTION move_log(
  after bigint, counts int[], ids uuid[], moments bigint[], bodies bytea[],
  keys uuid[], digests bigint[], places int[]
) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE
  l bigint;
  c bytea;
  width bigint;
  batch record;
BEGIN
  PERFORM moving();
  PERFORM 1 FROM log_lock FOR UPDATE;
  SELECT t.last, t.chain INTO STRICT l, c FROM log t ORDER BY t.last DESC LIMIT 1;
  IF l <> after OR l + (SELECT sum(k) FROM unnest(counts) k) > (SELECT head FROM move) THEN
    RETURN l;
  END IF;
  SELECT slice INTO STRICT width FROM log_identity;
  FOR batch IN SELECT * FROM unnest(counts, ids, moments, bodies) u(k, id, moment, body) LOOP
    c := substr(sha256(c || uuid_send(batch.id)), 1, 16);
    INSERT INTO log VALUES (l + batch.k, l + 1, 0, 0, c, batch.moment, batch.body);
    IF (l + batch.k) / width > l / width THEN PERFORM slice(); END IF;
    l := l + batch.k;
  END LOOP;
  INSERT INTO event SELECT u.key, after + u.place, u.digest
    FROM unnest(keys, digests, places) u(key, digest, place);
  RETURN l;
END $$;

-- Writes registrations with their push addresses; those that are there already stay as they are.
CREATE FUNCTION move_registrations(
  parts int[], apps text[], clients text[], revisions bigint[], digests bigint[], attrs text[],
  tokens text[], updates bigint[], days int[], payloads bytea[]
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
BEGIN
  PERFORM moving();
  INSERT INTO registration
    SELECT u.part, u.app, u.client, u.revision, (SELECT head FROM move), u.digest,
      u.attrs::uuid[], u.tokens::uuid[], u.updated, u.day, u.payload
    FROM unnest(parts, apps, clients, revisions, digests, attrs, tokens, updates, days, payloads)
      u(part, app, client, revision, digest, attrs, tokens, updated, day, payload)
    ON CONFLICT DO NOTHING;
  INSERT INTO push_address
    SELECT t.token, u.part, u.app, u.client
    FROM unnest(parts, apps, clients, tokens) u(part, app, client, tokens),
      unnest(u.tokens::uuid[]) t(token)
    ON CONFLICT DO NOTHING;
END $$;

-- Writes push state; that which is there already stays as it is.
CREATE FUNCTION move_states(
  parts int[], apps text[], clients text[], tolds bigint[], oweds boolean[], payloads bytea[]
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
BEGIN
  PERFORM moving();
  INSERT INTO push_state SELECT * FROM unnest(parts, apps, clients, tolds, oweds, payloads)
    ON CONFLICT DO NOTHING;
END $$;

-- Writes catalogs, and removals of apps as those without payload.
CREATE FUNCTION move_catalogs(apps text[], seqs bigint[], payloads bytea[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
BEGIN
  PERFORM moving();
  INSERT INTO catalog SELECT * FROM unnest(apps, seqs, payloads) ON CONFLICT DO NOTHING;
END $$;

-- Writes epochs; those that are there already stay as they are.
CREATE FUNCTION move_epochs(
  ordinals bigint[], nonces bigint[], openings bigint[], voids boolean[]
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
BEGIN
  PERFORM moving();
  INSERT INTO epoch SELECT * FROM unnest(ordinals, nonces, openings, voids)
    ON CONFLICT DO NOTHING;
END $$;

-- Writes a secret, with its times in seconds since 1970. One that is there already stays: it was
-- wrapped with another nonce.
CREATE FUNCTION move_secret(k text, n text, starts bigint, ends bigint, value bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
BEGIN
  PERFORM moving();
  INSERT INTO secret VALUES (k, n, to_timestamp(starts), to_timestamp(ends), value)
    ON CONFLICT DO NOTHING;
END $$;

-- Opens the log: from here on it is the only one. False, and nothing is changed, while the log is not
-- complete or a table has not as many rows as the source.
CREATE FUNCTION finish_move(
  registrations bigint, states bigint, catalogs bigint, epochs bigint, secrets bigint
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE h bigint;
BEGIN
  PERFORM set_config('synchronous_commit', 'on', true);
  SELECT head INTO h FROM move WHERE NOT done FOR UPDATE;
  IF NOT FOUND THEN RAISE 'no move is under way' USING ERRCODE = 'TG007'; END IF;
  IF (SELECT max(last) FROM log) <> h
    OR (SELECT count(*) FROM registration) <> registrations
    OR (SELECT count(*) FROM push_state) <> states
    OR (SELECT count(*) FROM catalog) <> catalogs
    OR (SELECT count(*) FROM epoch) <> epochs
    OR (SELECT count(*) FROM secret) <> secrets THEN
    RETURN false;
  END IF;
  -- The last epoch of the source ends here.
  INSERT INTO epoch SELECT ('x' || left(log_id::text, 8))::bit(32)::bigint, 0, h, false
    FROM log_identity;
  UPDATE move SET done = true;
  UPDATE log_identity SET closed = false;
  RETURN true;
END $$;
