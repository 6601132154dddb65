-- What the railway does all day, for pgbench; one transaction of each kind a time.
\set line random(1, 10)
\set passenger random(1, 200)
BEGIN;
UPDATE "trainRuns" SET "delayMinutes" = "delayMinutes" + 1, "lockVersion" = "lockVersion" + 1
  WHERE id = (SELECT id FROM "trainRuns" OFFSET 1000 * random() LIMIT 1 FOR UPDATE SKIP LOCKED);
INSERT INTO tickets (passenger_id, run_id) SELECT :passenger, id FROM "trainRuns" LIMIT 1;
COMMIT;
BEGIN;
INSERT INTO tickets (passenger_id, run_id) SELECT :passenger, id FROM "trainRuns" LIMIT 1;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM tickets WHERE id = (SELECT id FROM tickets LIMIT 1 FOR UPDATE SKIP LOCKED)
  RETURNING id)
  INSERT INTO audit_log (what, subject) SELECT 'refund', id FROM gone;
COMMIT;
-- No property of a widget.
UPDATE passengers SET locale = 'fr' WHERE id = :passenger;
UPDATE "trainRuns" SET "updatedAt" = now() WHERE id = (SELECT id FROM "trainRuns" LIMIT 1 FOR UPDATE SKIP LOCKED);
