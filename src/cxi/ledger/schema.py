"""What does the ledger's file hold?

- A call's row has the admission's place in the log as its key: neither is there without the other.
- Few pages a consume, for each costs: it writes `log`, `call` and two indexes. Nonce, capability, approval and touches stay in
  the
  call's row while it is leased; its settlement, which is not synced, moves them to `used` and `touch`.
  INVARIANT (used-once): a token is in the row of a leased call or in `used`, and `consume` asks both.
- `taken` has a row a draw and limit, with the sum of all that its scope gave up to it: what a window gave is the difference of
  two rows, however many lie between. A failed call's row is taken out, and the sums behind it are lowered.
- The log's `content` is the canonical text that its digest is taken over; `call` and `kind` repeat two of its keys for
  look-ups, and
  nothing is verified by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

APPLICATION: Final = 0x43584931  # "CXI1"
VERSION: Final = 3

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
  tenant TEXT NOT NULL,
  kind TEXT NOT NULL,
  key TEXT NOT NULL CHECK (key <> ''),
  session TEXT NOT NULL,
  PRIMARY KEY (tenant, kind, key, session)
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
  answer TEXT,
  taken TEXT
) STRICT;
CREATE INDEX call_drawn ON call (session, grant_id, drawn_ms, sequence);
CREATE INDEX call_open ON call (occurrence) WHERE state IN ('leased', 'outcome_unknown');
CREATE INDEX call_keyed ON call (session, idempotency_key, seq) WHERE idempotency_key IS NOT NULL;
CREATE INDEX call_failed ON call (session, grant_id) WHERE state = 'failed';
CREATE TABLE used (
  token TEXT PRIMARY KEY,
  seq INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE TABLE taken (
  tenant TEXT NOT NULL,
  scope TEXT NOT NULL,
  drawn_ms INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  running INTEGER NOT NULL CHECK (running >= 0),
  PRIMARY KEY (tenant, scope, drawn_ms, seq)
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

# By the version that a file has: what makes it the next one.
MIGRATIONS: Final[Mapping[int, str]] = MappingProxyType(
    {
        2: """
ALTER TABLE revoked RENAME TO revoked_2;
CREATE TABLE revoked (
  tenant TEXT NOT NULL,
  kind TEXT NOT NULL,
  key TEXT NOT NULL CHECK (key <> ''),
  session TEXT NOT NULL,
  PRIMARY KEY (tenant, kind, key, session)
) STRICT, WITHOUT ROWID;
INSERT OR IGNORE INTO revoked
  SELECT tenant, 'session', revoked_2.session, '' FROM revoked_2 JOIN session ON session.id = revoked_2.session
  WHERE grant_id = '';
INSERT OR IGNORE INTO revoked
  SELECT tenant, 'grant', grant_id, revoked_2.session FROM revoked_2 JOIN session ON session.id = revoked_2.session
  WHERE grant_id <> '';
INSERT OR IGNORE INTO revoked
  SELECT tenant, 'grant', grant_id, '' FROM revoked_2, (SELECT tenant FROM session UNION SELECT tenant FROM epoch)
  WHERE revoked_2.session = '';
DROP TABLE revoked_2;
ALTER TABLE call ADD COLUMN taken TEXT;
ALTER TABLE used ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;
CREATE TABLE taken (
  tenant TEXT NOT NULL,
  scope TEXT NOT NULL,
  drawn_ms INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  running INTEGER NOT NULL CHECK (running >= 0),
  PRIMARY KEY (tenant, scope, drawn_ms, seq)
) STRICT, WITHOUT ROWID;
""",
    }
)
