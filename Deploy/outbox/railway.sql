-- The database of a railway that knows nothing of widgets: what frameworks make of ten models, with
-- their usual columns, keys of five kinds and some names that need quotes.
CREATE TABLE operators (
  id bigserial PRIMARY KEY, name text NOT NULL, country char(2) NOT NULL);
CREATE TABLE stations (
  code varchar(8) PRIMARY KEY, name text NOT NULL, platform_count int NOT NULL DEFAULT 1);
CREATE TABLE lines (
  id serial PRIMARY KEY, label text NOT NULL UNIQUE, operator_id bigint REFERENCES operators);
CREATE TYPE run_state AS ENUM ('planned', 'running', 'arrived', 'cancelled');
CREATE TABLE "trainRuns" (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), "lineId" int NOT NULL REFERENCES lines,
  "delayMinutes" int NOT NULL DEFAULT 0, state run_state NOT NULL DEFAULT 'planned',
  composition json NOT NULL DEFAULT '[]', "lockVersion" int NOT NULL DEFAULT 0,
  "updatedAt" timestamptz NOT NULL DEFAULT now());
CREATE TABLE stops (
  run_id uuid NOT NULL REFERENCES "trainRuns" ON DELETE CASCADE, "position" smallint NOT NULL,
  station_code varchar(8) NOT NULL REFERENCES stations ON UPDATE CASCADE, platform text,
  departs_at timestamptz, PRIMARY KEY (run_id, "position"));
CREATE TABLE passengers (
  id bigserial PRIMARY KEY, email text NOT NULL UNIQUE, locale text NOT NULL DEFAULT 'de',
  created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE tickets (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), passenger_id bigint REFERENCES passengers,
  run_id uuid NOT NULL REFERENCES "trainRuns", seat text, price numeric(8, 2) NOT NULL DEFAULT 0);
CREATE TABLE disruptions (
  id bigserial PRIMARY KEY, line_id int REFERENCES lines ON DELETE SET NULL, title text NOT NULL,
  body text, active boolean NOT NULL DEFAULT true);
CREATE TABLE announcements (
  id bigserial PRIMARY KEY, station_code varchar(8) REFERENCES stations ON UPDATE CASCADE,
  "text" text NOT NULL, expires_at timestamptz);
CREATE TABLE audit_log (
  id bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), what text NOT NULL,
  subject uuid NOT NULL);

INSERT INTO operators (name, country) VALUES ('Federal', 'CH'), ('Private', 'DE');
INSERT INTO stations (code, name) SELECT 'S' || n, 'Station ' || n FROM generate_series(1, 20) n;
INSERT INTO lines (label, operator_id) SELECT 'L' || n, 1 + n % 2 FROM generate_series(1, 10) n;
INSERT INTO "trainRuns" ("lineId") SELECT 1 + n % 10 FROM generate_series(1, 1000) n;
INSERT INTO stops (run_id, "position", station_code, platform)
  SELECT id, n, 'S' || n, '1' FROM "trainRuns", generate_series(1, 3) n;
INSERT INTO passengers (email) SELECT n || '@example.org' FROM generate_series(1, 200) n;
