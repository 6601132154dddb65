-- The rows of a cluster. One node leads: it alone appends batches, each with what its store did in one
-- transaction; the others repeat them in their own stores. `item` has the newest value of everything
-- that is not the log itself, for a store that begins.
CREATE SCHEMA IF NOT EXISTS timeline;

CREATE TABLE timeline.cluster (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  log_id uuid NOT NULL DEFAULT gen_random_uuid(),
  format int NOT NULL,
  -- The keys of every store, sealed.
  secrets bytea,
  -- The last batch that a node had and the database lacks: clients may have seen what is lost.
  lost bigint,
  -- The epoch that made everything older void.
  voided bigint NOT NULL DEFAULT 0);

-- A batch is one transaction of the leader's store; its head is the last sequence with it. One that is
-- not logged has nothing but new values of items.
CREATE TABLE timeline.batch (
  number bigint PRIMARY KEY,
  id uuid NOT NULL,
  head bigint NOT NULL,
  body bytea NOT NULL,
  logged boolean NOT NULL DEFAULT true);
CREATE INDEX ON timeline.batch (number) WHERE NOT logged;
ALTER TABLE timeline.batch ALTER COLUMN body SET STORAGE EXTERNAL;
INSERT INTO timeline.batch VALUES (0, gen_random_uuid(), 0, '');
INSERT INTO timeline.cluster (format) VALUES (1);

CREATE TABLE timeline.item (
  kind int NOT NULL,
  app text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  value bytea NOT NULL,
  -- The batch that stored it.
  batch bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (kind, app, key));

-- The apps that were removed, each with the batch: their items from before it go in portions.
CREATE TABLE timeline.gone (app text COLLATE "C" PRIMARY KEY, batch bigint NOT NULL);

CREATE TABLE timeline.leader (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  node text,
  generation bigint NOT NULL,
  until timestamptz NOT NULL);
INSERT INTO timeline.leader VALUES (true, NULL, 0, 'epoch');

CREATE TABLE timeline.node (
  name text COLLATE "C" PRIMARY KEY,
  start uuid NOT NULL,
  position bigint NOT NULL,
  format int NOT NULL,
  seen timestamptz NOT NULL) WITH (fillfactor = 20);

-- Commits by itself, so that a node that stops amid the call keeps no lock. The row of the leader is
-- locked for update: shared locks would let two appends of one generation commit.
CREATE PROCEDURE timeline.append(
  own_generation bigint, follows bigint, follows_id uuid, batch_id uuid, new_head bigint, batch_body bytea,
  is_logged boolean, gone_apps text[], kinds int[], apps text[], keys text[], contents bytea[], floor bigint)
LANGUAGE plpgsql AS $$
DECLARE newest bigint; newest_id uuid; portion int; removed record;
BEGIN
  -- Whatever the default of the login is.
  PERFORM set_config('synchronous_commit', 'on', true);
  PERFORM 1 FROM timeline.leader WHERE generation = own_generation FOR UPDATE;
  IF NOT FOUND THEN RAISE 'another generation leads' USING ERRCODE = 'TG001'; END IF;
  SELECT number, id INTO newest, newest_id FROM timeline.batch ORDER BY number DESC LIMIT 1;
  IF newest IS DISTINCT FROM follows OR newest_id IS DISTINCT FROM follows_id THEN
    RAISE 'the batch follows another one' USING ERRCODE = 'TG002';
  END IF;
  INSERT INTO timeline.batch VALUES (newest + 1, batch_id, new_head, batch_body, is_logged);
  -- A node that is this far behind begins anew.
  IF newest % 1000 = 0 THEN
    DELETE FROM timeline.batch WHERE NOT logged AND number < newest - 100000;
  END IF;
  INSERT INTO timeline.gone SELECT unnest(gone_apps), newest + 1
    ON CONFLICT (app) DO UPDATE SET batch = excluded.batch;
  IF array_length(kinds, 1) > 0 THEN
    DELETE FROM timeline.item i USING unnest(kinds, apps, keys, contents) u(k, a, y, v)
      WHERE u.v IS NULL AND i.kind = u.k AND i.app = u.a AND i.key = u.y;
    INSERT INTO timeline.item
      SELECT u.k, u.a, u.y, u.v, newest + 1 FROM unnest(kinds, apps, keys, contents) u(k, a, y, v)
      WHERE u.v IS NOT NULL
      ON CONFLICT (kind, app, key) DO UPDATE SET value = excluded.value, batch = excluded.batch;
  END IF;
  IF floor > 0 THEN
    DELETE FROM timeline.batch WHERE number < least(newest - 10000, (
      SELECT number FROM timeline.batch WHERE head > floor ORDER BY number LIMIT 1));
    DELETE FROM timeline.item c WHERE c.kind = 2 AND c.key < (
      SELECT max(d.key) FROM timeline.item d
      WHERE d.kind = 2 AND d.app = c.app AND d.key <= lpad(floor::text, 20, '0'));
  END IF;
  -- A million rows take longer than a lease.
  FOR removed IN SELECT app, batch FROM timeline.gone LIMIT 1 LOOP
    DELETE FROM timeline.item WHERE ctid = ANY (ARRAY(
      SELECT i.ctid FROM timeline.item i WHERE i.kind = ANY ('{1,2,3,4}') AND i.app = removed.app
        AND i.batch < removed.batch LIMIT 5000));
    GET DIAGNOSTICS portion = ROW_COUNT;
    -- One that another session changed meanwhile was left.
    IF portion < 5000 THEN
      DELETE FROM timeline.gone g WHERE g.app = removed.app AND NOT EXISTS (
        SELECT FROM timeline.item i WHERE i.kind = ANY ('{1,2,3,4}') AND i.app = removed.app
          AND i.batch < removed.batch);
    END IF;
  END LOOP;
  COMMIT;
END $$;

-- Who may do what. An observer sees no payload and no key.
GRANT USAGE ON SCHEMA timeline TO timeline_node, timeline_observer;
GRANT SELECT ON ALL TABLES IN SCHEMA timeline TO timeline_node;
GRANT INSERT, DELETE ON timeline.batch TO timeline_node;
GRANT INSERT, UPDATE, DELETE ON timeline.item, timeline.gone, timeline.node TO timeline_node;
GRANT UPDATE ON timeline.leader TO timeline_node;
GRANT UPDATE (lost, voided) ON timeline.cluster TO timeline_node;
REVOKE EXECUTE ON PROCEDURE timeline.append FROM PUBLIC;
GRANT EXECUTE ON PROCEDURE timeline.append TO timeline_node;
GRANT SELECT ON timeline.leader, timeline.node TO timeline_observer;
GRANT SELECT (number, id, head) ON timeline.batch TO timeline_observer;
GRANT SELECT (log_id, format, lost) ON timeline.cluster TO timeline_observer;
