-- Makes the slice of the newest batch and two ahead; returns how many were missing. A slice is made
-- as a table of its own and then attached: CREATE ... PARTITION OF would wait behind a dump, and
-- every append behind that.
CREATE FUNCTION slice() RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE
  width bigint;
  head bigint;
  is_log_missing boolean;
  is_event_missing boolean;
  made int := 0;
BEGIN
  -- No locks are held through the replication; an append that uses the slice flushes it, too.
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT slice INTO STRICT width FROM log_identity FOR UPDATE;
  SELECT coalesce(max(last), (SELECT floor FROM log_floor)) INTO head FROM log;
  FOR n IN head / width .. head / width + 2 LOOP
    is_log_missing := to_regclass('tg.log_' || n) IS NULL;
    is_event_missing := to_regclass('tg.event_' || n) IS NULL;
    IF is_log_missing THEN
      EXECUTE format('CREATE TABLE log_%s (LIKE log INCLUDING DEFAULTS INCLUDING STORAGE)', n);
      EXECUTE format('ALTER TABLE log ATTACH PARTITION log_%s FOR VALUES FROM (%s) TO (%s)',
        n, n * width, (n + 1) * width);
    END IF;
    IF is_event_missing THEN
      EXECUTE format('CREATE TABLE event_%s (LIKE event, UNIQUE (key))', n);
      EXECUTE format('ALTER TABLE event ATTACH PARTITION event_%s FOR VALUES FROM (%s) TO (%s)',
        n, n * width, (n + 1) * width);
    END IF;
    IF is_log_missing OR is_event_missing THEN made := made + 1; END IF;
  END LOOP;
  RETURN made;
END $$;

-- How many of the tables that should exist are missing: an alarm when it is not 0.
CREATE FUNCTION missing_slices() RETURNS int
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = tg, pg_temp AS $$
  SELECT count(*)::int
  FROM (SELECT max(last) / (SELECT slice FROM log_identity) AS slice FROM log) newest,
    generate_series(newest.slice, newest.slice + 2) number,
    (VALUES ('log', 'log'::regclass), ('event', 'event'::regclass)) parent (name, oid)
  WHERE NOT EXISTS (
    SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = parent.oid AND c.relname = parent.name || '_' || number)
$$;

-- Keeps the log from a batch on for 15 minutes; false if the log does not have it with this chain,
-- or soon has it no more. A node has one reservation.
CREATE FUNCTION reserve(p bigint, c bytea) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE n int;
BEGIN
  SELECT node INTO n FROM node WHERE login = session_user;
  IF NOT FOUND THEN RAISE 'not a node' USING ERRCODE = 'TG004'; END IF;
  -- The floor does not move before this is committed.
  PERFORM 1 FROM log_floor WHERE floor <= p FOR SHARE;
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM 1 FROM log WHERE last = p AND chain = c;
  IF NOT FOUND THEN RETURN false; END IF;
  INSERT INTO reservation AS r VALUES (n, p, clock_timestamp() + interval '15 min')
    ON CONFLICT (node) DO UPDATE SET position = excluded.position, until = excluded.until;
  RETURN true;
END $$;

-- Ends the node's reservation.
CREATE FUNCTION end_reservation() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
  DELETE FROM reservation
    WHERE node = (SELECT node FROM node WHERE login = session_user)
$$;

-- Moves the floor to the first batch of a slice, so that the slices before it may go; returns the
-- floor. The log always has the batch at its floor. Nothing moves past the newest batch, a
-- reservation or a kept snapshot.
CREATE FUNCTION retain(first_kept bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE
  present bigint;
  target bigint;
  bound bigint;
BEGIN
  PERFORM set_config('synchronous_commit', 'on', true);
  SELECT floor INTO STRICT present FROM log_floor FOR UPDATE;
  -- A new snapshot, after the lock.
  SELECT least(max(last), (SELECT min(position) FROM reservation WHERE until > clock_timestamp()),
      (SELECT min(position) FROM snapshot_head)) INTO bound FROM log;
  -- A batch belongs to the slice of its last sequence; the events before the border belong to the
  -- slice before, which is why the floor is this batch and not the one before it.
  SELECT last INTO target FROM log
    WHERE last >= first_kept * (SELECT slice FROM log_identity) ORDER BY last LIMIT 1;
  IF target > present AND target <= bound THEN
    UPDATE log_floor SET floor = target;
    RETURN target;
  END IF;
  RETURN present;
END $$;

-- Does one step of removing what lies below the floor: drops a table that is detached, or else
-- detaches one. Returns its name, or NULL if there is none. Waits 20 ms for a lock, because every
-- append waits behind it; a caller that is refused tries again later.
CREATE FUNCTION retire() RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE
  width bigint;
  bound bigint;
  slice name;
  parent regclass;
BEGIN
  -- No locks are held through the replication; what is lost is done again.
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM set_config('lock_timeout', '20', true);
  SELECT i.slice, f.floor INTO STRICT width, bound FROM log_identity i, log_floor f;
  SELECT c.relname INTO slice FROM pg_class c
    WHERE c.relnamespace = 'tg'::regnamespace AND c.relkind = 'r' AND NOT c.relispartition
      AND CASE WHEN c.relname ~ '^(log|event)_[0-9]+$'
        THEN (split_part(c.relname, '_', 2)::bigint + 1) * width <= bound ELSE false END
    ORDER BY c.relname LIMIT 1;
  IF FOUND THEN
    EXECUTE format('DROP TABLE IF EXISTS %I', slice);
    RETURN slice;
  END IF;
  SELECT c.relname, i.inhparent INTO slice, parent
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent IN ('log'::regclass, 'event'::regclass)
      AND (split_part(c.relname, '_', 2)::bigint + 1) * width <= bound
    ORDER BY split_part(c.relname, '_', 2)::bigint, c.relname LIMIT 1;
  IF FOUND THEN
    EXECUTE format('ALTER TABLE %s DETACH PARTITION %I', parent, slice);
    RETURN slice;
  END IF;
  RETURN NULL;
END $$;
