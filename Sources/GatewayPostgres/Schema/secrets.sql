-- Adds a secret to a kind whose newest one is `newest`; false if another is, because another node
-- was faster. It is used from `lead` seconds on, by the server's clock: all nodes have read it by
-- then, or are not ready. Of the kind, `keep` stay valid with it; older ones end `grace` seconds
-- after the new one begins.
CREATE FUNCTION add_secret(
  k text, n text, newest text, lead int, keep int, grace int, value bytea
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE
  last record;
  start timestamptz := clock_timestamp() + make_interval(secs => lead);
BEGIN
  PERFORM set_config('synchronous_commit', 'on', true);
  PERFORM 1 FROM node WHERE login = session_user;
  IF NOT FOUND THEN RAISE 'not a node' USING ERRCODE = 'TG004'; END IF;
  PERFORM 1 FROM owner WHERE part = 4098 FOR UPDATE;      -- one at a time
  -- A move brings the secrets of the store: the hash keys are never replaced.
  IF (SELECT closed FROM log_identity) THEN RAISE 'closed' USING ERRCODE = 'TG005'; END IF;
  SELECT s.name, s.not_before INTO last FROM secret s
    WHERE s.kind = k ORDER BY s.not_before DESC LIMIT 1;
  IF last.name IS DISTINCT FROM newest THEN RETURN false; END IF;
  IF newest IS NOT NULL THEN
    IF k LIKE 'hash-%' THEN
      RAISE 'a hash key is never rotated' USING ERRCODE = '22023';
    END IF;
    IF lead < 60 OR start <= last.not_before THEN
      RAISE 'a secret must be read by all nodes before it is used' USING ERRCODE = '22023';
    END IF;
  ELSE
    -- Nodes reckon with whole seconds.
    start := date_trunc('second', start);
  END IF;
  INSERT INTO secret VALUES (k, n, start, NULL, value);
  IF k NOT LIKE 'hash-%' THEN
    UPDATE secret s SET not_after = start + make_interval(secs => grace)
      WHERE s.kind = k AND s.not_after IS NULL AND s.name NOT IN (
        SELECT t.name FROM secret t WHERE t.kind = k ORDER BY t.not_before DESC LIMIT keep);
  END IF;
  RETURN true;
END $$;

-- Removes the secrets that have ended, unless a move counts them; returns how many.
CREATE FUNCTION drop_secrets() RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE gone int;
BEGIN
  DELETE FROM secret WHERE not_after <= clock_timestamp()
    AND NOT (SELECT closed FROM log_identity);
  GET DIAGNOSTICS gone = ROW_COUNT;
  RETURN gone;
END $$;
