-- The roles of a cluster; run by a superuser, or by a role that may create roles. Repeatable.
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['tg_owner', 'tg_node', 'tg_observer', 'tg_operator'] LOOP
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = name) THEN
      EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', name);
    END IF;
  END LOOP;
END $$;
-- An operator migrates and adds nodes as the owner, and makes existing logins nodes.
GRANT tg_owner TO tg_operator;
GRANT tg_node TO tg_operator WITH ADMIN OPTION;
-- An observer sees standbys and the sessions of others, where whoever runs this may grant it.
DO $$ BEGIN
  GRANT pg_read_all_stats TO tg_observer;
EXCEPTION WHEN insufficient_privilege THEN NULL;
END $$;
DO $$ BEGIN
  EXECUTE pg_catalog.format('GRANT CREATE ON DATABASE %I TO tg_owner', pg_catalog.current_database());
END $$;
