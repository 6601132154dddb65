-- Migration 1: the log of a cluster, its registrations and push state. All files of the migration
-- are run as tg_owner in one transaction.
--
-- The log and the events are only inserted into: under an open old snapshot, rows that every batch
-- updates would grow a chain that nothing may prune.

CREATE TABLE log_identity (
  one int PRIMARY KEY CHECK (one = 1),
  log_id uuid NOT NULL,
  format int NOT NULL,                -- of the records
  slice bigint NOT NULL CHECK (slice > 0),
  version_keys bigint NOT NULL,
  limits jsonb NOT NULL,              -- all that a decision or a window follows from
  closed boolean NOT NULL DEFAULT false
);
CREATE TABLE log_lock (one int PRIMARY KEY);   -- one row, locked, never updated
CREATE TABLE log_floor (one int PRIMARY KEY, floor bigint NOT NULL);

CREATE TABLE epoch (                  -- of the store that was moved here; the last one is this log
  ordinal bigint PRIMARY KEY,
  nonce bigint NOT NULL,
  opened_at bigint NOT NULL,          -- the sequence at which the epoch before it ends
  is_void boolean NOT NULL            -- no cursor of it, or of an older one, holds
);

CREATE TABLE log (                    -- a row is a batch: one group commit
  last bigint PRIMARY KEY,
  first bigint NOT NULL,
  node int NOT NULL,
  batch bigint NOT NULL,              -- 63 random bits
  chain bytea NOT NULL,               -- 16 bytes, from the chain before and 16 random bytes
  at bigint NOT NULL,                 -- milliseconds since 1970
  body bytea NOT NULL
) PARTITION BY RANGE (last);
ALTER TABLE log ALTER body SET STORAGE EXTERNAL;

CREATE TABLE event (
  key uuid NOT NULL,                  -- a keyed hash of app, place of its last removal, source, id
  seq bigint NOT NULL,
  digest bigint NOT NULL
) PARTITION BY RANGE (seq);

CREATE TABLE node (
  node int PRIMARY KEY CHECK (node > 0),
  login name NOT NULL UNIQUE,
  generation bigint NOT NULL DEFAULT 0,
  url text
);
CREATE TABLE node_seen (
  node int PRIMARY KEY,
  seen_at timestamptz NOT NULL,
  until timestamptz,                  -- the lease, by the server's clock
  load jsonb,
  process bigint NOT NULL,            -- 63 random bits of the process
  session int NOT NULL,               -- the server's process of its connection
  beat bigint NOT NULL DEFAULT 0,     -- counts the renewals
  serves boolean NOT NULL DEFAULT false
) WITH (fillfactor = 20);
CREATE TABLE reservation (
  node int PRIMARY KEY,
  position bigint NOT NULL,
  until timestamptz NOT NULL
);

CREATE TABLE catalog (
  app text,
  seq bigint,
  payload bytea,                      -- NULL: the app was removed
  PRIMARY KEY (app, seq)
);
CREATE INDEX catalog_seq ON catalog (seq);
CREATE INDEX catalog_removal ON catalog (app, seq) WHERE payload IS NULL;
CREATE TABLE removal (                -- removed apps with rows that are not deleted yet
  app text,
  seq bigint,
  part int NOT NULL,                  -- the rows of the parts below are
  PRIMARY KEY (app, seq)
);
CREATE TABLE registration (
  part smallint, app text, client text,
  revision bigint NOT NULL,           -- never used twice, and higher with every write of the client
  seq bigint NOT NULL,                -- the head as probed
  digest bigint NOT NULL,
  attrs uuid[] NOT NULL,              -- keyed hashes of app, name and value
  tokens uuid[] NOT NULL,             -- of its push addresses; push_address says whether still its own
  updated_at bigint NOT NULL,
  seen_day int NOT NULL,
  payload bytea NOT NULL,
  PRIMARY KEY (part, app, client)
) WITH (fillfactor = 85);
CREATE INDEX registration_client ON registration (app, client COLLATE "C");
CREATE INDEX registration_attrs ON registration USING gin (attrs);
-- A row that was written before its app was removed is void until it is deleted.
CREATE VIEW live_registration AS
  SELECT * FROM registration r WHERE NOT EXISTS (
    SELECT FROM catalog c WHERE c.app = r.app AND c.payload IS NULL AND c.seq > r.seq);
CREATE TABLE push_address (
  token uuid PRIMARY KEY,
  part smallint NOT NULL, app text NOT NULL, client text NOT NULL
);
CREATE TABLE push_state (
  part smallint, app text, client text,
  told bigint NOT NULL,
  owed boolean NOT NULL,              -- something above told is owed; else owner.clear counts, too
  payload bytea NOT NULL,
  PRIMARY KEY (part, app, client)
) WITH (fillfactor = 60);
CREATE UNLOGGED TABLE heard (
  part smallint, app text, client text, node int,
  process bigint NOT NULL,            -- of the node: the streams of another one are closed
  open boolean NOT NULL,
  upto bigint NOT NULL,
  at timestamptz NOT NULL,
  PRIMARY KEY (part, app, client, node)
);
CREATE TABLE owner (
  part int PRIMARY KEY,               -- 0 to 4095: partitions; then snapshot, retention, secrets
  node int,
  generation bigint NOT NULL,
  clear bigint NOT NULL
);
CREATE TABLE push_attempt (
  at timestamptz NOT NULL, app text, client text, entry bytea
) PARTITION BY RANGE (at);
CREATE TABLE secret (
  kind text, name text,
  not_before timestamptz NOT NULL,    -- the newest one that has begun is used
  not_after timestamptz,              -- the end of its validity, once a newer one follows
  wrapped bytea NOT NULL,             -- under the fleet key, which no database has
  PRIMARY KEY (kind, name),
  CHECK (kind NOT LIKE 'hash-%' OR not_after IS NULL)
);
CREATE TABLE snapshot (
  position bigint, node int, part int,
  body bytea NOT NULL,
  PRIMARY KEY (position, node, part)
);
ALTER TABLE snapshot ALTER body SET STORAGE EXTERNAL;
CREATE TABLE snapshot_head (          -- written after all pieces
  position bigint PRIMARY KEY,
  node int NOT NULL,                  -- whose pieces
  parts int NOT NULL,
  chain bytea NOT NULL,
  floor bigint NOT NULL,
  format int NOT NULL,
  checksum bytea NOT NULL,
  written_at timestamptz NOT NULL
);
