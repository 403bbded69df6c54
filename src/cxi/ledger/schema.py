"""What does the ledger's file hold?

- A call's row has the admission's place in the log as its key: neither is there without the other.
- Few pages a consume, for each costs: it writes `log`, `call` and two indexes. Nonce, capability, approval and touches stay in
  the
  call's row while it is leased; its settlement, which is not synced, moves them to `used` and `touch`.
  INVARIANT (used-once): a token is in the row of a leased call or in `used`, and `consume` asks both.
- The log's `content` is the canonical text that its digest is taken over; `call` and `kind` repeat two of its keys for
  look-ups, and
  nothing is verified by them.
"""

from __future__ import annotations

from typing import Final

APPLICATION: Final = 0x43584931  # "CXI1"
VERSION: Final = 2

SCHEMA: Final = """
CREATE TABLE ledger (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  origin TEXT NOT NULL,
  opened INTEGER NOT NULL
) STRICT;
CREATE TABLE epoch (
  tenant TEXT PRIMARY KEY,
  counter INTEGER NOT NULL CHECK (counter > 0),
  digest TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE session (
  id TEXT PRIMARY KEY,
  tenant TEXT NOT NULL,
  user TEXT NOT NULL,
  agent TEXT NOT NULL,
  credential TEXT NOT NULL,
  closed INTEGER NOT NULL DEFAULT 0 CHECK (closed IN (0, 1))
) STRICT, WITHOUT ROWID;
CREATE TABLE revoked (
  session TEXT NOT NULL,
  grant_id TEXT NOT NULL,
  PRIMARY KEY (session, grant_id),
  CHECK (session <> '' OR grant_id <> '')
) STRICT, WITHOUT ROWID;
CREATE TABLE call (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL CHECK (id <> ''),
  tenant TEXT NOT NULL,
  session TEXT NOT NULL,
  grant_id TEXT NOT NULL,
  sequence INTEGER NOT NULL CHECK (sequence > 0),
  drawn_ms INTEGER NOT NULL,
  action TEXT NOT NULL,
  event_key TEXT NOT NULL,
  occurrence TEXT NOT NULL,
  idempotency_key TEXT,
  manifest TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('leased', 'done', 'failed', 'outcome_unknown', 'released')),
  writer TEXT NOT NULL,
  nonce TEXT,
  capability TEXT,
  approval TEXT,
  touches TEXT,
  settled INTEGER,
  answer TEXT
) STRICT;
CREATE INDEX call_drawn ON call (session, grant_id, drawn_ms, sequence);
CREATE INDEX call_open ON call (occurrence) WHERE state IN ('leased', 'outcome_unknown');
CREATE INDEX call_keyed ON call (session, idempotency_key, seq) WHERE idempotency_key IS NOT NULL;
CREATE INDEX call_failed ON call (session, grant_id) WHERE state = 'failed';
CREATE TABLE used (
  token TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
CREATE TABLE touch (
  tenant TEXT NOT NULL,
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  influence TEXT NOT NULL,
  call TEXT NOT NULL,
  PRIMARY KEY (tenant, kind, key, influence)
) STRICT, WITHOUT ROWID;
CREATE TABLE endorsed (
  commitment TEXT PRIMARY KEY,
  salt BLOB NOT NULL,
  tenant TEXT NOT NULL,
  kind TEXT NOT NULL,
  key TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE log (
  seq INTEGER PRIMARY KEY CHECK (seq > 0),
  previous TEXT NOT NULL,
  hash TEXT NOT NULL,
  kind TEXT NOT NULL,
  call TEXT NOT NULL,
  content TEXT NOT NULL
) STRICT;
"""
