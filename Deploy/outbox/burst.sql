-- Ten changes in one transaction, for pgbench.
INSERT INTO tickets (passenger_id, run_id)
  SELECT n, (SELECT id FROM "trainRuns" LIMIT 1) FROM generate_series(1, 10) n;
