-- Has this been used? The answer for many gateways: the tables, and the functions that alone may write them.
--
-- * Everything here belongs to `cxi_owner`, a role that nobody logs in as. A gateway's role may read its own tenant's rows and
--   call the functions below; it may write no table.
-- * Whose tenant it is says `login`, by the role that logged in (`session_user`), which only a superuser can change.
--   INVARIANT (bound-by-login): no function believes a tenant's name that it is given.
-- * Row-level security holds inside the functions too: `enter` names the tenant for this transaction, and each table's policy for
--   the owner lets its rows alone through. What a gateway sets `cxi.tenant` to by itself decides nothing: its own policy asks `login`.
-- * Times are whole milliseconds since the epoch. Digests are their 32 bytes.

CREATE TABLE cxi.tenant (
  tenant text PRIMARY KEY CHECK (tenant <> ''),
  counter bigint NOT NULL DEFAULT 0 CHECK (counter >= 0),
  digest text NOT NULL DEFAULT '',
  -- `given` is for tests: the caller's clock decides in place of the server's.
  clock text NOT NULL DEFAULT 'server' CHECK (clock IN ('server', 'given'))
);

CREATE TABLE cxi.login (
  role name PRIMARY KEY,
  tenant text NOT NULL
);

CREATE TABLE cxi.session (
  tenant text NOT NULL,
  id text NOT NULL,
  user_name text NOT NULL,
  agent text NOT NULL,
  credential text NOT NULL,
  closed boolean NOT NULL DEFAULT false,
  PRIMARY KEY (tenant, id)
);

-- A mark is its kind, session and key, with U+001E between them.
CREATE TABLE cxi.revoked (
  tenant text NOT NULL,
  mark text NOT NULL,
  PRIMARY KEY (tenant, mark)
);

-- One hash chain a writer: writers of one ledger never wait for each other's head.
CREATE TABLE cxi.chain (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant text NOT NULL,
  origin text NOT NULL UNIQUE,
  host text NOT NULL,               -- chains of one host are signed by one key
  instance text NOT NULL,           -- the writer that has it now, or had it last
  generation bigint NOT NULL DEFAULT 1,
  seq bigint NOT NULL DEFAULT 0,
  hash bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
  counter bigint,                   -- the epoch that its gateway runs under; null where it is none
  seen timestamptz NOT NULL DEFAULT clock_timestamp(),
  open boolean NOT NULL DEFAULT true
) WITH (fillfactor = 20);

-- What is told, in the order of `place` over all chains: nothing rests on it but the order in which entries are shown.
CREATE SEQUENCE cxi.place;
CREATE TABLE cxi.log (
  chain bigint NOT NULL,
  seq bigint NOT NULL CHECK (seq > 0),
  tenant text NOT NULL,
  place bigint NOT NULL,
  previous bytea NOT NULL,
  hash bytea NOT NULL,
  kind text NOT NULL,
  call text NOT NULL,
  content text NOT NULL,            -- canonical JSON, byte for byte what the hash is taken over
  PRIMARY KEY (chain, seq)
);

-- No index holds what changes later, so that a settlement touches no index (heap-only tuples).
CREATE TABLE cxi.call (
  tenant text NOT NULL,
  session text NOT NULL,
  grant_id text NOT NULL,
  sequence bigint NOT NULL CHECK (sequence > 0),
  id text NOT NULL CHECK (id <> ''),
  chain bigint NOT NULL,
  seq bigint NOT NULL,
  place bigint NOT NULL,
  task text NOT NULL,
  drawn_ms bigint NOT NULL,
  action bytea NOT NULL,
  event_key bytea NOT NULL,
  occurrence bytea NOT NULL,
  key bytea,
  manifest bytea NOT NULL,
  state text NOT NULL CHECK (state IN ('leased', 'done', 'failed', 'outcome_unknown', 'released')),
  writer text NOT NULL,
  nonce bytea NOT NULL,
  capability bytea NOT NULL,
  approval bytea,
  limits jsonb,                     -- the scopes that it drew from, given back where it fails
  settled_chain bigint,
  settled bigint,
  answer text,
  PRIMARY KEY (tenant, session, grant_id, sequence)
) WITH (fillfactor = 85);
-- What tells calls apart comes first: a plan that was made for an empty table has no index to mistake for another.
CREATE UNIQUE INDEX call_nonce ON cxi.call (nonce, tenant);
CREATE UNIQUE INDEX call_capability ON cxi.call (capability, tenant);
CREATE UNIQUE INDEX call_approval ON cxi.call (approval, tenant) WHERE approval IS NOT NULL;
CREATE INDEX call_key ON cxi.call (key, session, tenant, place) WHERE key IS NOT NULL;

-- What blocks. INVARIANT (one-open): the primary key alone makes two open calls of one occurrence impossible.
CREATE TABLE cxi.open (
  tenant text NOT NULL,
  occurrence bytea NOT NULL,
  session text NOT NULL,
  grant_id text NOT NULL,
  sequence bigint NOT NULL,
  id text NOT NULL,
  state text NOT NULL CHECK (state IN ('leased', 'outcome_unknown')),
  chain bigint NOT NULL,
  generation bigint NOT NULL,       -- which of the chain's writers leased it
  PRIMARY KEY (tenant, occurrence)
) WITH (fillfactor = 70);

-- Calls that failed: few, and asked for by grant and by event.
CREATE TABLE cxi.failure (
  tenant text NOT NULL,
  session text NOT NULL,
  grant_id text NOT NULL,
  sequence bigint NOT NULL,
  event_key bytea NOT NULL,
  PRIMARY KEY (tenant, session, grant_id, sequence)
);

-- What each scope gave to calls that did not fail: a row a draw, with the sum up to it. What a window gave is the difference of two
-- rows, however many lie between.
CREATE TABLE cxi.taken (
  tenant text NOT NULL,
  scope text NOT NULL,
  drawn_ms bigint NOT NULL,         -- a scope's draws never go back in time
  place bigint NOT NULL,            -- of the admission
  running numeric NOT NULL CHECK (running >= 0),
  PRIMARY KEY (tenant, scope, drawn_ms, place)
);

-- Nonces, capabilities and approvals of calls that `vacuum` dropped.
CREATE TABLE cxi.used (
  tenant text NOT NULL,
  token bytea NOT NULL,
  PRIMARY KEY (tenant, token)
);

CREATE TABLE cxi.touch (
  tenant text NOT NULL,
  kind text NOT NULL,
  key text NOT NULL,
  influence text NOT NULL,
  call text NOT NULL
);
CREATE INDEX touch_place ON cxi.touch (key, kind, tenant, influence);

CREATE TABLE cxi.endorsed (
  tenant text NOT NULL,
  commitment text NOT NULL,
  salt bytea NOT NULL,
  kind text NOT NULL,
  key text NOT NULL,
  PRIMARY KEY (tenant, commitment)
);

-- Signed heads, so that any host can verify any chain; each host keeps its own beside its key as well.
CREATE TABLE cxi.checkpoint (
  tenant text NOT NULL,
  chain bigint NOT NULL,
  size bigint NOT NULL,
  envelope text NOT NULL,
  PRIMARY KEY (chain, size, envelope)
);

-- --- who sees what --------------------------------------------------------------------------------------------------------

CREATE FUNCTION cxi.my_tenant() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ SELECT tenant FROM cxi.login WHERE role = session_user $$;

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['tenant', 'session', 'revoked', 'chain', 'log', 'call', 'open', 'failure', 'taken', 'used', 'touch',
                           'endorsed', 'checkpoint'] LOOP
    EXECUTE format('ALTER TABLE cxi.%I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE cxi.%I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY own ON cxi.%I TO cxi_owner USING (tenant = current_setting(''cxi.tenant'', true))'
                   ' WITH CHECK (tenant = current_setting(''cxi.tenant'', true))', t);
    EXECUTE format('CREATE POLICY see ON cxi.%I FOR SELECT TO cxi_gateway USING (tenant = (SELECT cxi.my_tenant()))', t);
    EXECUTE format('GRANT SELECT ON cxi.%I TO cxi_gateway', t);
  END LOOP;
END $$;
GRANT USAGE ON SCHEMA cxi TO cxi_gateway;

-- --- inside ---------------------------------------------------------------------------------------------------------------

-- The tenant of the role that logged in; everything that follows in this transaction sees that tenant's rows alone.
-- (What no gateway may call runs under the fixed search path of the function that called it.)
CREATE FUNCTION cxi.enter() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  t text;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'the ledger works in `read committed` only: what waited for a lock must see what was committed meanwhile'
      USING ERRCODE = 'CX002';
  END IF;
  SELECT tenant INTO t FROM cxi.login WHERE role = session_user;
  IF t IS NULL THEN
    RAISE EXCEPTION 'the role `%` is bound to no tenant', session_user USING ERRCODE = 'CX003';
  END IF;
  PERFORM set_config('cxi.tenant', t, true);
  RETURN t;
END $$;

-- Locks last until the commit is durable and visible, so who waited sees what was done.
-- `alone` takes the tenant's lock for itself: what changes the epoch, a session or a revocation waits for every consume under way.
CREATE FUNCTION cxi.key(name text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT pg_catalog.hashtextextended(name, 6043) $$;

CREATE FUNCTION cxi.alone(t text) RETURNS void LANGUAGE sql AS
$$ SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('tenant' || chr(31) || t, 6043)) $$;

-- Put an entry behind the chain's head. The row lock on the head is this writer's own.
CREATE FUNCTION cxi.link(t text, p_chain bigint, p_generation bigint, p_kind text, p_call text, p_content text,
                         OUT seq bigint, OUT previous bytea, OUT hash bytea, OUT place bigint)
LANGUAGE plpgsql AS $$
BEGIN
  SELECT c.seq + 1, c.hash INTO seq, previous FROM cxi.chain c
    WHERE c.tenant = t AND c.id = p_chain AND c.generation = p_generation AND c.open FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'another writer was given this chain' USING ERRCODE = 'CX001';
  END IF;
  hash := sha256(convert_to('{"content":"sha256:' || encode(sha256(convert_to(p_content, 'UTF8')), 'hex')
    || '","previous":"sha256:' || encode(previous, 'hex') || '","seq":' || seq || '}', 'UTF8'));
  place := nextval('cxi.place');
  UPDATE cxi.chain c SET seq = link.seq, hash = link.hash WHERE c.id = p_chain;
  INSERT INTO cxi.log VALUES (p_chain, seq, t, place, previous, hash, p_kind, p_call, p_content);
END $$;

-- A transaction with nothing that must be on the disk rides on the next one that must.
CREATE FUNCTION cxi.ride(riding boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF riding THEN
    PERFORM pg_catalog.set_config('synchronous_commit', 'off', true);
  END IF;
END $$;

-- Take a failed call's draws out again, and lower the sums behind them.
CREATE FUNCTION cxi.give_back(t text, p_place bigint, p_limits jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  l record;
  d bigint;
BEGIN
  FOR l IN SELECT x.scope, max(x.amount) AS amount FROM jsonb_to_recordset(p_limits) AS x(scope text, amount numeric)
      GROUP BY x.scope ORDER BY cxi.key(t || chr(31) || 'scope' || chr(31) || x.scope) LOOP
    PERFORM pg_advisory_xact_lock(cxi.key(t || chr(31) || 'scope' || chr(31) || l.scope));
    DELETE FROM cxi.taken k WHERE k.tenant = t AND k.scope = l.scope AND k.place = p_place RETURNING k.drawn_ms INTO d;
    UPDATE cxi.taken k SET running = k.running - l.amount
      WHERE k.tenant = t AND k.scope = l.scope AND (k.drawn_ms, k.place) > (d, p_place);
  END LOOP;
END $$;

-- What a call becomes once nobody waits for it any more.
CREATE FUNCTION cxi.become(t text, p_session text, p_grant text, p_sequence bigint, p_state text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  c record;
BEGIN
  UPDATE cxi.call SET state = p_state
    WHERE tenant = t AND session = p_session AND grant_id = p_grant AND sequence = p_sequence
    RETURNING occurrence, event_key, limits, place INTO STRICT c;
  IF p_state = 'outcome_unknown' THEN
    UPDATE cxi.open SET state = p_state WHERE tenant = t AND occurrence = c.occurrence;
    RETURN;
  END IF;
  DELETE FROM cxi.open WHERE tenant = t AND occurrence = c.occurrence;
  IF p_state = 'failed' THEN
    INSERT INTO cxi.failure VALUES (t, p_session, p_grant, p_sequence, c.event_key);
    IF c.limits IS NOT NULL THEN
      PERFORM cxi.give_back(t, c.place, c.limits);
    END IF;
  END IF;
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA cxi FROM PUBLIC;
GRANT EXECUTE ON FUNCTION cxi.my_tenant() TO cxi_gateway;
ALTER DEFAULT PRIVILEGES IN SCHEMA cxi REVOKE ALL ON FUNCTIONS FROM PUBLIC;

-- --- writers --------------------------------------------------------------------------------------------------------------

-- A chain to write: one of this host that nobody writes, else a new one. The session keeps the writer's lock until it ends.
CREATE FUNCTION cxi.claim(p_host text, p_instance text, p_origin text,
                          OUT chain bigint, OUT generation bigint, OUT origin text, OUT seq bigint, OUT hash bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text := cxi.enter();
  c record;
BEGIN
  PERFORM cxi.alone(t);
  FOR c IN SELECT x.id FROM cxi.chain x WHERE x.tenant = t AND x.open AND x.instance = p_instance LOOP
    IF NOT pg_try_advisory_xact_lock(cxi.key('chain' || chr(31) || c.id)) THEN
      RAISE EXCEPTION 'writer `%` is open already', p_instance USING ERRCODE = 'CX005';
    END IF;
  END LOOP;
  FOR c IN SELECT * FROM cxi.chain x WHERE x.tenant = t AND x.host = p_host AND p_host <> '' AND NOT x.open ORDER BY x.id LOOP
    CONTINUE WHEN NOT pg_try_advisory_lock(cxi.key('chain' || chr(31) || c.id));
    UPDATE cxi.chain x SET open = true, instance = p_instance, generation = x.generation + 1, counter = NULL,
        seen = clock_timestamp() WHERE x.id = c.id AND NOT x.open
      RETURNING x.id, x.generation, x.origin, x.seq, x.hash INTO chain, generation, origin, seq, hash;
    IF FOUND THEN
      RETURN;
    END IF;
    PERFORM pg_advisory_unlock(cxi.key('chain' || chr(31) || c.id));
  END LOOP;
  INSERT INTO cxi.chain AS x (tenant, origin, host, instance) VALUES (t, p_origin, p_host, p_instance)
    RETURNING x.id, x.generation, x.origin, x.seq, x.hash INTO chain, generation, origin, seq, hash;
  PERFORM pg_advisory_lock(cxi.key('chain' || chr(31) || chain));
END $$;

-- The same writer on a new connection. Its lock is free only when the session before has ended, whatever it was doing.
-- INVARIANT (barrier): this commits durably, so what that session committed is as durable as this when it returns.
CREATE FUNCTION cxi.resume(p_chain bigint, p_generation bigint, p_known bigint, OUT seq bigint, OUT hash bytea, OUT known bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text := cxi.enter();
BEGIN
  PERFORM pg_advisory_lock(cxi.key('chain' || chr(31) || p_chain));
  UPDATE cxi.chain c SET seen = clock_timestamp()
    WHERE c.tenant = t AND c.id = p_chain AND c.generation = p_generation AND c.open RETURNING c.seq, c.hash INTO seq, hash;
  IF NOT FOUND THEN
    PERFORM pg_advisory_unlock(cxi.key('chain' || chr(31) || p_chain));
    RAISE EXCEPTION 'another writer was given this chain' USING ERRCODE = 'CX001';
  END IF;
  SELECT l.hash INTO known FROM cxi.log l WHERE l.chain = p_chain AND l.seq = p_known;
END $$;

-- Still there.
CREATE FUNCTION cxi.beat(p_chain bigint, p_generation bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text := cxi.enter();
BEGIN
  PERFORM cxi.ride(true);
  UPDATE cxi.chain SET seen = clock_timestamp() WHERE tenant = t AND id = p_chain AND generation = p_generation AND open;
  RETURN FOUND;
END $$;

-- A clean end: what is still leased has no writer any more.
CREATE FUNCTION cxi.leave(p_chain bigint, p_generation bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text := cxi.enter();
BEGIN
  UPDATE cxi.chain SET open = false, counter = NULL WHERE tenant = t AND id = p_chain AND generation = p_generation;
END $$;

-- Chains whose writers are gone: closed, or without a session and silent for the grace. Where `instance` is given, that one too if
-- it has no session: it is being opened again. Until this transaction ends, nobody else finds the same.
CREATE FUNCTION cxi.gone(p_mine bigint, p_instance text, p_grace interval)
RETURNS TABLE (chain bigint, writer text, origin text, open boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text := cxi.enter();
  c record;
BEGIN
  FOR c IN SELECT x.id, x.instance, x.origin, x.open FROM cxi.chain x
      WHERE x.tenant = t
        AND (x.open AND x.id IS DISTINCT FROM p_mine AND (x.instance = p_instance OR x.seen < clock_timestamp() - p_grace)
          OR EXISTS (SELECT 1 FROM cxi.open o WHERE o.tenant = t AND o.chain = x.id AND o.state = 'leased'
                     AND (NOT x.open OR o.generation < x.generation)))
      ORDER BY x.id LOOP
    IF c.id = p_mine OR pg_try_advisory_xact_lock(cxi.key('chain' || chr(31) || c.id)) THEN
      chain := c.id; writer := c.instance; origin := c.origin; open := c.open;
      RETURN NEXT;
    END IF;
  END LOOP;
END $$;

-- The leases of a writer that is gone, and its chain closed: what it sends later is refused. Of the caller's own chain, the leases of
-- its earlier writers.
CREATE FUNCTION cxi.bury(p_chain bigint, p_mine bigint, p_generation bigint, p_instance text, p_grace interval)
RETURNS TABLE (session text, grant_id text, sequence bigint, id text, seq bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text := cxi.enter();
BEGIN
  IF p_chain <> p_mine THEN
    IF NOT pg_try_advisory_xact_lock(cxi.key('chain' || chr(31) || p_chain)) THEN
      RAISE EXCEPTION 'its writer is there' USING ERRCODE = 'CX004';
    END IF;
    UPDATE cxi.chain c SET open = false, counter = NULL, generation = c.generation + 1
      WHERE c.tenant = t AND c.id = p_chain AND c.open AND (c.instance = p_instance OR c.seen < clock_timestamp() - p_grace);
    IF EXISTS (SELECT 1 FROM cxi.chain c WHERE c.tenant = t AND c.id = p_chain AND c.open) THEN
      RAISE EXCEPTION 'its writer is there' USING ERRCODE = 'CX004';
    END IF;
  END IF;
  RETURN QUERY SELECT c.session, c.grant_id, c.sequence, c.id, c.seq FROM cxi.open o
    JOIN cxi.call c USING (tenant, session, grant_id, sequence)
    WHERE o.tenant = t AND o.chain = p_chain AND o.state = 'leased' AND (p_chain <> p_mine OR o.generation < p_generation)
    ORDER BY c.seq;
END $$;

-- One lease of a writer that is gone: nobody knows how it ended.
CREATE FUNCTION cxi.abandon(p_chain bigint, p_generation bigint, p_session text, p_grant text, p_sequence bigint, p_id text,
                            p_content text, OUT seq bigint, OUT hash bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text := cxi.enter();
BEGIN
  PERFORM 1 FROM cxi.open o JOIN cxi.chain c ON c.id = o.chain
    WHERE o.tenant = t AND (o.session, o.grant_id, o.sequence, o.id) = (p_session, p_grant, p_sequence, p_id) AND o.state = 'leased'
      AND (NOT c.open OR o.generation < c.generation) FOR UPDATE OF o;
  IF NOT FOUND THEN
    RAISE EXCEPTION '`%` is no lease of a writer that is gone', p_id USING ERRCODE = 'CX004';
  END IF;
  PERFORM cxi.become(t, p_session, p_grant, p_sequence, 'outcome_unknown');
  SELECT l.seq, l.hash INTO seq, hash FROM cxi.link(t, p_chain, p_generation, 'alarm', p_id, p_content) l;
END $$;

-- --- epochs and sessions --------------------------------------------------------------------------------------------------

-- The tenant's epoch. `content` tells of the epoch with `counter`, which the caller read before; where another came first, nothing
-- is written and the row is returned as it is. Without `explicit`, a gateway at work keeps its epoch: `others` counts those.
CREATE FUNCTION cxi.activate(p_chain bigint, p_generation bigint, p_digest text, p_counter bigint, p_explicit boolean,
                             p_content text, p_grace interval,
                             OUT counter bigint, OUT digest text, OUT others bigint, OUT seq bigint, OUT hash bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text := cxi.enter();
BEGIN
  PERFORM cxi.alone(t);
  SELECT x.counter, x.digest INTO counter, digest FROM cxi.tenant x WHERE x.tenant = t FOR UPDATE;
  SELECT count(*) INTO others FROM cxi.chain c WHERE c.tenant = t AND c.id IS DISTINCT FROM p_chain AND c.open
    AND c.counter = activate.counter AND c.seen >= clock_timestamp() - p_grace;
  IF counter > 0 AND digest = p_digest THEN
    RETURN;
  END IF;
  IF counter + 1 <> p_counter OR (others > 0 AND NOT p_explicit) THEN
    RETURN;
  END IF;
  counter := p_counter;
  digest := p_digest;
  UPDATE cxi.tenant x SET counter = activate.counter, digest = activate.digest WHERE x.tenant = t;
  SELECT l.seq, l.hash INTO seq, hash FROM cxi.link(t, p_chain, p_generation, 'epoch', '', p_content) l;
END $$;

-- This writer is a gateway under an epoch.
CREATE FUNCTION cxi.work(p_chain bigint, p_generation bigint, p_counter bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text := cxi.enter();
BEGIN
  UPDATE cxi.chain SET counter = p_counter, seen = clock_timestamp()
    WHERE tenant = t AND id = p_chain AND generation = p_generation AND open;
END $$;

CREATE FUNCTION cxi.open_session(p_chain bigint, p_generation bigint, p_tenant text, p_session text, p_user text, p_agent text,
                                 p_credential text, p_content text, p_riding boolean,
                                 OUT answer text, OUT seq bigint, OUT hash bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text := cxi.enter();
  s record;
BEGIN
  IF t <> p_tenant THEN
    answer := 'other';
    RETURN;
  END IF;
  PERFORM cxi.ride(p_riding);
  INSERT INTO cxi.session VALUES (t, p_session, p_user, p_agent, p_credential) ON CONFLICT DO NOTHING;
  IF FOUND THEN
    answer := 'opened';
    SELECT l.seq, l.hash INTO seq, hash FROM cxi.link(t, p_chain, p_generation, 'session', '', p_content) l;
    RETURN;
  END IF;
  SELECT * INTO s FROM cxi.session WHERE tenant = t AND id = p_session;
  answer := CASE WHEN (s.user_name, s.agent, s.credential, s.closed) = (p_user, p_agent, p_credential, false) THEN 'open' ELSE 'other' END;
END $$;

CREATE FUNCTION cxi.close_session(p_chain bigint, p_generation bigint, p_session text, p_content text, OUT seq bigint, OUT hash bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text := cxi.enter();
BEGIN
  PERFORM cxi.alone(t);
  UPDATE cxi.session SET closed = true WHERE tenant = t AND id = p_session AND NOT closed;
  IF FOUND THEN
    SELECT l.seq, l.hash INTO seq, hash FROM cxi.link(t, p_chain, p_generation, 'session', '', p_content) l;
  END IF;
END $$;

-- --- the event ------------------------------------------------------------------------------------------------------------

-- Take a whole batch's locks in one order, so that two batches never wait for each other crosswise.
CREATE FUNCTION cxi.take(p_names text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text := cxi.enter();
BEGIN
  PERFORM pg_advisory_xact_lock_shared(cxi.key('tenant' || chr(31) || t));
  PERFORM pg_advisory_xact_lock(k) FROM (SELECT DISTINCT cxi.key(t || chr(31) || n) AS k FROM unnest(p_names) n ORDER BY 1) o;
END $$;

-- Spend one capability: steps 1 to 6 of `Ledger.consume`, in their order. A refusal writes nothing.
CREATE FUNCTION cxi.consume(
  p_chain bigint, p_generation bigint, p_now bigint, p_counter bigint, p_digest text,
  p_tenant text, p_user text, p_agent text, p_session text, p_grant text, p_sequence bigint, p_call text,
  p_limit bigint, p_window bigint, p_repeat text,
  p_action bytea, p_event bytea, p_occurrence bytea, p_key bytea, p_manifest bytea,
  p_deadline bigint, p_not_before bigint, p_not_after bigint,
  p_nonce bytea, p_capability bytea, p_approval bytea,
  p_task text, p_touches text, p_lineage text[], p_marks text, p_limits jsonb, p_after jsonb, p_retries bigint, p_content text,
  OUT code text, OUT detail text, OUT place text, OUT seq bigint, OUT hash bytea, OUT answer text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text := cxi.enter();
  names text[] := ARRAY['grant' || chr(31) || p_session || chr(31) || p_grant, 'occurrence' || chr(31) || encode(p_occurrence, 'hex')];
  now_ms bigint;
  s record;
  c record;
  given bigint;
  link record;
BEGIN
  IF current_setting('synchronous_commit') = 'off' OR current_setting('fsync') = 'off'
      OR current_setting('synchronous_commit') IN ('local', 'remote_write') AND current_setting('synchronous_standby_names') <> '' THEN
    RAISE EXCEPTION 'this session does not wait for the disk' USING ERRCODE = 'CX002';
  END IF;
  IF p_key IS NOT NULL THEN
    names := names || ('key' || chr(31) || p_session || chr(31) || encode(p_key, 'hex'));
  END IF;
  IF p_approval IS NOT NULL THEN
    names := names || ('approval' || chr(31) || encode(p_approval, 'hex'));
  END IF;
  IF p_limits IS NOT NULL THEN
    names := names || ARRAY(SELECT 'scope' || chr(31) || l.scope FROM jsonb_to_recordset(p_limits) AS l(scope text))
      || ARRAY(SELECT 'grant' || chr(31) || (l.own ->> 0) || chr(31) || (l.own ->> 1)
               FROM jsonb_to_recordset(p_limits) AS l(own jsonb) WHERE l.own IS NOT NULL);
  END IF;
  PERFORM pg_advisory_xact_lock_shared(cxi.key('tenant' || chr(31) || t));
  PERFORM pg_advisory_xact_lock(k) FROM (SELECT DISTINCT cxi.key(t || chr(31) || n) AS k FROM unnest(names) n ORDER BY 1) o;

  -- From here on nobody else decides on any of these, and what others decided is seen.
  SELECT x.counter, x.digest, x.clock, y.user_name, y.agent, y.closed,
      EXISTS (SELECT 1 FROM cxi.revoked r WHERE r.tenant = t) AS any_revoked
    INTO s FROM cxi.tenant x LEFT JOIN cxi.session y ON y.tenant = t AND y.id = p_session WHERE x.tenant = t;
  now_ms := CASE WHEN s.clock = 'given' THEN p_now ELSE (extract(epoch FROM clock_timestamp()) * 1000)::bigint END;

  -- 1. the epoch
  IF t <> p_tenant OR s.counter <> p_counter OR s.digest <> p_digest OR s.counter = 0 THEN
    code := 'EPOCH_CHANGED'; place := 'policy_epoch';
    detail := 'another policy epoch is in force than the manifest''s';
    RETURN;
  END IF;

  -- 2. session, revocation, deadline, schedule
  IF s.user_name IS NULL OR s.closed OR (s.user_name, s.agent) <> (p_user, p_agent) THEN
    code := 'SESSION_UNKNOWN'; place := 'session';
    detail := format('session `%s` is not open for this principal', p_session);
    RETURN;
  END IF;
  IF p_lineage IS NOT NULL THEN
    SELECT x.id INTO place FROM cxi.session x WHERE x.tenant = t AND x.id = ANY (p_lineage) AND x.closed LIMIT 1;
    IF FOUND THEN
      code := 'SESSION_UNKNOWN';
      detail := format('session `%s`, which delegated it, is closed', place);
      RETURN;
    END IF;
  END IF;
  IF s.any_revoked THEN
    SELECT r.mark INTO detail FROM cxi.revoked r WHERE r.tenant = t AND r.mark = ANY (string_to_array(p_marks, chr(31))) LIMIT 1;
    IF FOUND THEN
      code := 'REVOKED'; place := 'session';  -- the caller knows what the mark stands for
      RETURN;
    END IF;
  END IF;
  IF now_ms >= p_deadline THEN
    code := 'EXPIRED'; place := 'session';
    detail := format('the deadline of `%s` is past', p_call);
    RETURN;
  END IF;
  IF p_not_after > 0 AND now_ms >= p_not_after THEN
    code := 'EXPIRED'; place := p_grant;
    detail := format('grant `%s` no longer holds', p_grant);
    RETURN;
  END IF;
  IF now_ms < p_not_before THEN
    code := 'NOT_YET'; place := p_grant;
    detail := format('grant `%s` does not hold yet', p_grant);
    RETURN;
  END IF;

  -- 3. the idempotency key
  IF p_key IS NOT NULL THEN
    SELECT x.action, x.state, x.id, x.answer INTO c FROM cxi.call x
      WHERE x.tenant = t AND x.session = p_session AND x.key = p_key ORDER BY x.place DESC LIMIT 1;
    IF FOUND THEN
      place := c.id;
      IF c.action <> p_action THEN
        code := 'KEY_REUSE_CONFLICT'; detail := format('the key was used for another action, by `%s`', c.id);
      ELSIF c.state = 'leased' THEN
        code := 'IN_FLIGHT'; detail := format('`%s` has the same key, and it is `leased`', c.id);
      ELSIF c.state = 'outcome_unknown' THEN
        code := 'OUTCOME_UNKNOWN'; detail := format('`%s` has the same key, and it is `outcome_unknown`', c.id);
      ELSIF c.state = 'done' AND p_repeat = 'replay' THEN
        code := 'RECORDED'; answer := c.answer;
      ELSIF c.state = 'done' THEN
        code := 'EVENT_REPEATED'; detail := format('`%s` had the same key and the same action', c.id);
      END IF;
      IF code IS NOT NULL THEN
        RETURN;
      END IF;
      place := NULL;
    END IF;
  END IF;

  -- 4. an equal event that is under way or unknown, here or in another session
  SELECT x.state, x.id INTO c FROM cxi.open x WHERE x.tenant = t AND x.occurrence = p_occurrence;
  IF FOUND THEN
    code := CASE c.state WHEN 'leased' THEN 'IN_FLIGHT' ELSE 'OUTCOME_UNKNOWN' END; place := c.id;
    detail := format('`%s` is an equal event, and it is `%s`', c.id, c.state);
    RETURN;
  END IF;

  -- 5. limit and window, cumulative limits, order, retries, sequence, and everything that is used once
  SELECT x.sequence, x.drawn_ms INTO c FROM cxi.call x
    WHERE x.tenant = t AND x.session = p_session AND x.grant_id = p_grant ORDER BY x.sequence DESC LIMIT 1;
  c.sequence := coalesce(c.sequence, 0);
  c.drawn_ms := greatest(c.drawn_ms, now_ms);  -- INVARIANT (draws-in-order): a grant's draws never go back in time
  given := p_limit - cxi.drained(t, 'session:' || p_session || '/' || p_grant, p_window, now_ms);  -- what delegates left
  IF (p_window > 0 OR c.sequence >= given) AND cxi.given(t, p_session, p_grant, c.sequence, given, p_window, now_ms) >= given THEN
    code := CASE WHEN EXISTS (SELECT 1 FROM cxi.call x WHERE x.tenant = t AND x.session = p_session AND x.event_key = p_event
      AND x.state <> 'failed') THEN 'EVENT_REPEATED' ELSE 'GRANT_EXHAUSTED' END;
    place := p_grant; detail := format('grant `%s` gives %s, and they are used', p_grant, p_limit);
    RETURN;
  END IF;
  IF p_limits IS NOT NULL OR p_after IS NOT NULL OR p_retries IS NOT NULL THEN
    SELECT b.code, b.detail, b.place INTO code, detail, place
      FROM cxi.bound(t, p_session, p_event, now_ms, p_limits, p_after, p_retries) b;
    IF code IS NOT NULL THEN
      RETURN;
    END IF;
  END IF;
  IF p_sequence <> c.sequence + 1 THEN
    code := 'CAPABILITY_USED'; place := p_grant;
    detail := format('draw %s of `%s` is not the next one', p_sequence, p_grant);
    RETURN;
  END IF;
  place := CASE
    WHEN EXISTS (SELECT 1 FROM cxi.call x WHERE x.tenant = t AND x.nonce = p_nonce) THEN 'nonce'
    WHEN EXISTS (SELECT 1 FROM cxi.call x WHERE x.tenant = t AND x.capability = p_capability) THEN 'capability'
    WHEN p_approval IS NOT NULL AND EXISTS (SELECT 1 FROM cxi.call x WHERE x.tenant = t AND x.approval = p_approval) THEN 'approval'
    WHEN EXISTS (SELECT 1 FROM cxi.used x WHERE x.tenant = t AND x.token IN (p_nonce, p_capability, p_approval)) THEN 'token'
  END;
  IF place IS NOT NULL THEN
    code := 'CAPABILITY_USED'; detail := format('the %s was used before', place);
    RETURN;
  END IF;

  -- 6. lease, touches and log entry, all in this transaction
  link := cxi.link(t, p_chain, p_generation, 'admission', p_call, p_content);
  INSERT INTO cxi.call VALUES (t, p_session, p_grant, p_sequence, p_call, p_chain, link.seq, link.place, p_task, c.drawn_ms,
    p_action, p_event, p_occurrence, p_key, p_manifest, 'leased',
    (SELECT x.instance FROM cxi.chain x WHERE x.id = p_chain), p_nonce, p_capability, p_approval, p_limits);
  INSERT INTO cxi.open VALUES (t, p_occurrence, p_session, p_grant, p_sequence, p_call, 'leased', p_chain, p_generation);
  IF p_limits IS NOT NULL THEN
    INSERT INTO cxi.taken SELECT t, l.scope, greatest(now_ms, k.drawn_ms), link.place, coalesce(k.running, 0) + l.amount
      FROM (SELECT x.scope, max(x.amount) AS amount FROM jsonb_to_recordset(p_limits) AS x(scope text, amount numeric)
            GROUP BY x.scope) l
      LEFT JOIN LATERAL (SELECT * FROM cxi.taken y WHERE y.tenant = t AND y.scope = l.scope
            ORDER BY y.drawn_ms DESC, y.place DESC LIMIT 1) k ON true;
  END IF;
  IF p_touches IS NOT NULL THEN
    PERFORM cxi.index(t, p_touches, p_call);
  END IF;
  code := 'LEASED'; seq := link.seq; hash := link.hash;
END $$;

-- How many draws count against the limit: all of the session or of its window, but those that failed; more than it are not told apart.
CREATE FUNCTION cxi.given(t text, p_session text, p_grant text, p_last bigint, p_limit bigint, p_window bigint, now_ms bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  n bigint := 0;
  c record;
BEGIN
  IF p_window <= 0 THEN
    IF p_last < p_limit THEN
      RETURN p_last;
    END IF;
    RETURN p_last - (SELECT count(*) FROM cxi.failure WHERE tenant = t AND session = p_session AND grant_id = p_grant);
  END IF;
  FOR c IN SELECT drawn_ms, state FROM cxi.call WHERE tenant = t AND session = p_session AND grant_id = p_grant
      ORDER BY sequence DESC LOOP
    EXIT WHEN c.drawn_ms <= now_ms - p_window OR n >= p_limit;
    n := n + (c.state <> 'failed')::int;
  END LOOP;
  RETURN n;
END $$;

-- What a scope gave in a window; 0 for ever.
CREATE FUNCTION cxi.drained(t text, p_scope text, p_window bigint, now_ms bigint) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
  n numeric;
BEGIN
  SELECT running INTO n FROM cxi.taken WHERE tenant = t AND scope = p_scope ORDER BY drawn_ms DESC, place DESC LIMIT 1;
  IF n IS NULL OR p_window <= 0 THEN
    RETURN coalesce(n, 0);
  END IF;
  RETURN n - coalesce((SELECT running FROM cxi.taken WHERE tenant = t AND scope = p_scope AND drawn_ms <= now_ms - p_window
    ORDER BY drawn_ms DESC, place DESC LIMIT 1), 0);
END $$;

-- Cumulative limits, sequences and retries; the first that does not hold.
CREATE FUNCTION cxi.bound(t text, p_session text, p_event bytea, now_ms bigint, p_limits jsonb, p_after jsonb, p_retries bigint,
                          OUT code text, OUT detail text, OUT place text)
LANGUAGE plpgsql AS $$
DECLARE
  l record;
  n numeric;
BEGIN
  FOR l IN SELECT * FROM jsonb_to_recordset(p_limits) AS x(scope text, amount numeric, most numeric, "window" bigint, own jsonb) LOOP
    n := cxi.drained(t, l.scope, l."window", now_ms);
    IF l.own IS NOT NULL THEN
      SELECT n + cxi.given(t, l.own ->> 0, l.own ->> 1, coalesce(max(sequence), 0), (l.most - n)::bigint, l."window", now_ms) INTO n
        FROM cxi.call WHERE tenant = t AND session = l.own ->> 0 AND grant_id = l.own ->> 1;
    END IF;
    IF n + l.amount > l.most THEN
      code := 'LIMIT_REACHED'; place := l.scope;
      detail := format('`%s` gives %s, and %s are used: %s more are too many', l.scope, l.most, n, l.amount);
      RETURN;
    END IF;
  END LOOP;
  FOR l IN SELECT * FROM jsonb_to_recordset(p_after) AS x(session text, "grant" text, times bigint) LOOP
    SELECT count(*) INTO n FROM (SELECT 1 FROM cxi.call
      WHERE tenant = t AND session = coalesce(nullif(l.session, ''), p_session) AND grant_id = l."grant" AND state = 'done'
      LIMIT l.times) d;
    IF n < l.times THEN
      code := 'SEQUENCE_UNMET'; place := l."grant";
      detail := format('it comes after %s of `%s`, and %s are done', l.times, l."grant", n);
      RETURN;
    END IF;
  END LOOP;
  IF p_retries IS NOT NULL THEN
    SELECT count(*) INTO n FROM cxi.failure WHERE tenant = t AND session = p_session AND event_key = p_event;
    IF n > p_retries THEN
      code := 'RETRIES_EXHAUSTED'; place := 'event_key';
      detail := format('%s attempts of this event failed, and %s may be tried again', n, p_retries);
    END IF;
  END IF;
END $$;

-- The origin index. Races leave a row twice, which says no more than once: no unique index, so nobody waits for another's insert.
CREATE FUNCTION cxi.index(t text, p_touches text, p_call text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO cxi.touch
    SELECT t, p.value ->> 0, p.value ->> 1, i.value, p_call
    FROM json_array_elements(p_touches::json -> 0) p, json_array_elements_text(p_touches::json -> 1) i
    WHERE NOT EXISTS (SELECT 1 FROM cxi.touch x
      WHERE x.tenant = t AND x.kind = p.value ->> 0 AND x.key = p.value ->> 1 AND x.influence = i.value);
END $$;

-- Write how it ended, once. `settled` is false where the call is no longer leased: `state` tells what it is.
CREATE FUNCTION cxi.settle(p_chain bigint, p_generation bigint, p_session text, p_grant text, p_sequence bigint, p_id text,
                           p_manifest bytea, p_state text, p_answer text, p_content text, p_riding boolean,
                           OUT state text, OUT settled boolean, OUT seq bigint, OUT hash bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text := cxi.enter();
BEGIN
  settled := false;
  SELECT c.state INTO state FROM cxi.call c WHERE c.tenant = t AND c.session = p_session AND c.grant_id = p_grant
    AND c.sequence = p_sequence AND c.id = p_id AND c.manifest = p_manifest FOR UPDATE;
  IF NOT FOUND OR state <> 'leased' OR p_state NOT IN ('done', 'failed', 'outcome_unknown') THEN
    RETURN;
  END IF;
  PERFORM cxi.ride(p_riding);
  PERFORM cxi.become(t, p_session, p_grant, p_sequence, p_state);
  SELECT l.seq, l.hash INTO seq, hash FROM cxi.link(t, p_chain, p_generation, 'settlement', p_id, p_content) l;
  -- An answer is kept only where a replay could ask for it.
  UPDATE cxi.call c SET settled_chain = p_chain, settled = settle.seq, answer = CASE WHEN c.key IS NOT NULL THEN p_answer END
    WHERE c.tenant = t AND c.session = p_session AND c.grant_id = p_grant AND c.sequence = p_sequence;
  settled := true;
  state := p_state;
END $$;

-- An entry that spends nothing.
CREATE FUNCTION cxi.append(p_chain bigint, p_generation bigint, p_kind text, p_call text, p_content text, p_riding boolean,
                           OUT seq bigint, OUT previous bytea, OUT hash bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text := cxi.enter();
BEGIN
  PERFORM cxi.ride(p_riding);
  SELECT l.seq, l.previous, l.hash INTO seq, previous, hash
    FROM cxi.link(t, p_chain, p_generation, p_kind, p_call, p_content) l;
END $$;

-- --- what persons do ------------------------------------------------------------------------------------------------------

-- A person says how an unknown outcome ended. `state` is what the call was: anything but `outcome_unknown` changed nothing.
CREATE FUNCTION cxi.release(p_chain bigint, p_generation bigint, p_id text, p_state text, p_content text,
                            OUT state text, OUT seq bigint, OUT hash bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text := cxi.enter();
  o record;
BEGIN
  SELECT * INTO o FROM cxi.open x WHERE x.tenant = t AND x.id = p_id ORDER BY x.state DESC LIMIT 1 FOR UPDATE;
  state := o.state;
  IF state IS DISTINCT FROM 'outcome_unknown' OR p_state NOT IN ('done', 'failed', 'released') THEN
    RETURN;
  END IF;
  PERFORM cxi.become(t, o.session, o.grant_id, o.sequence, p_state);
  SELECT l.seq, l.hash INTO seq, hash FROM cxi.link(t, p_chain, p_generation, 'person', p_id, p_content) l;
END $$;

CREATE FUNCTION cxi.revoke(p_chain bigint, p_generation bigint, p_mark text, p_content text, OUT seq bigint, OUT hash bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text := cxi.enter();
BEGIN
  PERFORM cxi.alone(t);
  INSERT INTO cxi.revoked VALUES (t, p_mark) ON CONFLICT DO NOTHING;
  SELECT l.seq, l.hash INTO seq, hash FROM cxi.link(t, p_chain, p_generation, 'person', '', p_content) l;
END $$;

CREATE FUNCTION cxi.touch(p_touches text, p_call text, p_riding boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text := cxi.enter();
BEGIN
  PERFORM cxi.ride(p_riding);
  PERFORM cxi.index(t, p_touches, p_call);
END $$;

CREATE FUNCTION cxi.endorse(p_chain bigint, p_generation bigint, p_commitment text, p_salt bytea, p_kind text, p_key text,
                            p_content text, OUT seq bigint, OUT hash bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text := cxi.enter();
BEGIN
  DELETE FROM cxi.touch WHERE tenant = t AND kind = p_kind AND key = p_key;
  INSERT INTO cxi.endorsed VALUES (t, p_commitment, p_salt, p_kind, p_key);
  SELECT l.seq, l.hash INTO seq, hash FROM cxi.link(t, p_chain, p_generation, 'person', '', p_content) l;
END $$;

-- --- upkeep ---------------------------------------------------------------------------------------------------------------

CREATE FUNCTION cxi.keep(p_chain bigint, p_size bigint, p_envelope text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text := cxi.enter();
BEGIN
  IF EXISTS (SELECT 1 FROM cxi.chain WHERE tenant = t AND id = p_chain) THEN
    INSERT INTO cxi.checkpoint VALUES (t, p_chain, p_size, p_envelope) ON CONFLICT DO NOTHING;
  END IF;
END $$;

-- Drop calls of closed sessions that ended before an instant: no check asks for them. What is used once stays used. `until` is the
-- place up to which calls were looked at.
CREATE FUNCTION cxi.vacuum(p_before bigint, OUT dropped bigint, OUT until bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text := cxi.enter();
BEGIN
  PERFORM cxi.alone(t);
  SELECT max(place) INTO until FROM cxi.call WHERE tenant = t AND drawn_ms < p_before;
  WITH gone AS (
    DELETE FROM cxi.call c USING cxi.session s
      WHERE c.tenant = t AND c.place <= until AND s.tenant = t AND s.id = c.session AND s.closed
        AND c.state IN ('done', 'failed', 'released')
      RETURNING c.session, c.grant_id, c.sequence, c.nonce, c.capability, c.approval),
  kept AS (
    INSERT INTO cxi.used SELECT t, token FROM gone, unnest(ARRAY[nonce, capability, approval]) token
      WHERE token IS NOT NULL ON CONFLICT DO NOTHING),
  forgotten AS (
    DELETE FROM cxi.failure f USING gone d WHERE f.tenant = t
      AND (f.session, f.grant_id, f.sequence) = (d.session, d.grant_id, d.sequence))
  SELECT count(*) INTO dropped FROM gone;
  IF dropped > 0 THEN
    -- Of a scope the newest draw before the instant stays: what a longer window cannot tell apart counts as used.
    DELETE FROM cxi.taken k WHERE k.tenant = t AND k.drawn_ms < p_before AND EXISTS (SELECT 1 FROM cxi.taken y
      WHERE y.tenant = t AND y.scope = k.scope AND y.drawn_ms < p_before AND (y.drawn_ms, y.place) > (k.drawn_ms, k.place));
  END IF;
END $$;

GRANT EXECUTE ON FUNCTION cxi.claim, cxi.resume, cxi.beat, cxi.leave, cxi.gone, cxi.bury, cxi.abandon, cxi.activate, cxi.work,
  cxi.open_session, cxi.close_session, cxi.take, cxi.consume, cxi.settle, cxi.append, cxi.release, cxi.revoke, cxi.touch,
  cxi.endorse, cxi.keep, cxi.vacuum TO cxi_gateway;
