-- Writes a piece of the node's snapshot, whose position it has reserved. Without a wait for the
-- disk: the head is written last, and waits for all.
CREATE FUNCTION write_piece(p bigint, number int, piece bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE n int;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT r.node INTO n FROM reservation r JOIN node USING (node)
    WHERE login = session_user AND r.position = p AND r.until > clock_timestamp();
  IF NOT FOUND THEN RAISE 'no reservation' USING ERRCODE = 'TG006'; END IF;
  INSERT INTO snapshot VALUES (p, n, number, piece)
    ON CONFLICT (position, node, part) DO UPDATE SET body = excluded.body;
END $$;

-- Completes the node's snapshot: from here on nodes may read it. Keeps it and the one before,
-- removes all others but those that another node is writing, and ends the reservation.
CREATE FUNCTION finish_snapshot(
  p bigint, c bytea, f bigint, form int, sum bytea, count int
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tg, pg_temp AS $$
DECLARE n int;
BEGIN
  PERFORM set_config('synchronous_commit', 'on', true);
  -- The floor does not move before this is committed.
  PERFORM 1 FROM log_floor WHERE floor <= p FOR SHARE;
  IF NOT FOUND THEN RAISE 'no reservation' USING ERRCODE = 'TG006'; END IF;
  SELECT r.node INTO n FROM reservation r JOIN node USING (node)
    WHERE login = session_user AND r.position = p AND r.until > clock_timestamp();
  IF NOT FOUND THEN RAISE 'no reservation' USING ERRCODE = 'TG006'; END IF;
  PERFORM 1 FROM log WHERE last = p AND chain = c;
  IF NOT FOUND THEN RAISE 'another history' USING ERRCODE = 'TG006'; END IF;
  DELETE FROM snapshot s WHERE s.position = p AND s.node = n AND s.part >= finish_snapshot.count;
  IF (SELECT count(*) FROM snapshot s WHERE s.position = p AND s.node = n)
    <> finish_snapshot.count THEN
    RAISE 'a piece is missing' USING ERRCODE = 'TG006';
  END IF;
  INSERT INTO snapshot_head
    VALUES (p, n, finish_snapshot.count, c, f, form, sum, clock_timestamp())
    ON CONFLICT (position) DO NOTHING;
  DELETE FROM snapshot_head WHERE position NOT IN (
    SELECT position FROM snapshot_head ORDER BY position DESC LIMIT 2);
  DELETE FROM snapshot s
    WHERE NOT EXISTS (
        SELECT FROM snapshot_head h WHERE h.position = s.position AND h.node = s.node)
      AND NOT EXISTS (
        SELECT FROM reservation r WHERE r.node = s.node AND r.node <> n
          AND r.position = s.position AND r.until > clock_timestamp());
  DELETE FROM reservation WHERE node = n;
END $$;
