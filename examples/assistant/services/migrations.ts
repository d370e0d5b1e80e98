/** Statement `index` brings a database from version `index` to `index + 1`. Only append to this list. */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE contacts (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE COLLATE NOCASE,
    phone TEXT,
    company TEXT,
    kind TEXT NOT NULL CHECK (kind IN ('customer', 'supplier', 'partner'))
  ) STRICT;

  CREATE TABLE invoices (
    id INTEGER PRIMARY KEY,
    number TEXT NOT NULL UNIQUE,
    contact_id INTEGER NOT NULL REFERENCES contacts (id) ON DELETE RESTRICT,
    issued_on TEXT NOT NULL,
    due_on TEXT NOT NULL,
    paid_on TEXT
  ) STRICT;

  CREATE TABLE invoice_lines (
    invoice_id INTEGER NOT NULL REFERENCES invoices (id) ON DELETE CASCADE,
    description TEXT NOT NULL,
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    unit_cents INTEGER NOT NULL CHECK (unit_cents >= 0)
  ) STRICT;

  CREATE INDEX invoice_lines_by_invoice ON invoice_lines (invoice_id);
  `,
  `
  CREATE TABLE reminders (
    id INTEGER PRIMARY KEY,
    text TEXT NOT NULL,
    due_on TEXT NOT NULL,
    done INTEGER NOT NULL DEFAULT 0 CHECK (done IN (0, 1))
  ) STRICT;
  `,
];
