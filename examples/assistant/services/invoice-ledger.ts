import { DatabaseSync } from 'node:sqlite';
import { inject, singleton } from 'tsyringe';
import { addDays, calendarDay } from './calendar-day.js';
import { CLOCK, type Clock } from './clock.js';
import { ContactBook } from './contact-book.js';
import { DATABASE } from './database.js';
import { inTransaction } from './in-transaction.js';
import { centsOf } from './money.js';

/** The state of an invoice today. */
export enum InvoiceState {
  Open = 'open',
  Overdue = 'overdue',
  Paid = 'paid',
}

/** An invoice with its total. Days are written `2026-01-31`. */
export interface Invoice {
  readonly number: string;
  readonly customer: string;
  readonly issuedOn: string;
  readonly dueOn: string;
  readonly state: InvoiceState;
  readonly totalCents: number;
}

/** Filters for invoices; without a filter, all match. */
export interface InvoiceFilter {
  readonly state?: InvoiceState;
  readonly customer?: string;
}

/** An invoice to create. */
export interface InvoiceDraft {
  readonly customer: string;
  readonly dueInDays: number;
  readonly lines: readonly {
    readonly description: string;
    readonly quantity: number;
    readonly unitPrice: number;
  }[];
}

const SELECT = `
  SELECT number, name AS customer, issued_on AS issuedOn, due_on AS dueOn,
    CASE WHEN paid_on IS NOT NULL THEN 'paid' WHEN due_on < :today THEN 'overdue' ELSE 'open' END AS state,
    (SELECT sum(quantity * unit_cents) FROM invoice_lines WHERE invoice_id = invoices.id) AS totalCents
  FROM invoices JOIN contacts ON contacts.id = contact_id`;

/** The invoices of the user. */
@singleton()
export class InvoiceLedger {
  constructor(
    @inject(DATABASE) private readonly database: DatabaseSync,
    @inject(CLOCK) private readonly clock: Clock,
    private readonly contacts: ContactBook,
  ) {}

  /** Newest first. */
  list({ state, customer = '' }: InvoiceFilter = {}): readonly Invoice[] {
    const rows = this.database
      .prepare(
        `SELECT * FROM (${SELECT} WHERE instr(lower(concat_ws(' ', name, company)), lower(:customer)) > 0)
         WHERE :state IS NULL OR state = :state ORDER BY issuedOn DESC, number DESC`,
      )
      .all({ today: this.#today(), customer: customer.trim(), state: state ?? null });
    return rows as unknown as Invoice[];
  }

  /** Throws if there is no invoice with this number. */
  get(number: string): Invoice {
    const row = this.database
      .prepare(`${SELECT} WHERE number = :number COLLATE NOCASE`)
      .get({ today: this.#today(), number: number.trim() });
    if (row === undefined) throw new Error(`There is no invoice '${number}'.`);
    return row as unknown as Invoice;
  }

  /** Stores an invoice with all its lines, or nothing. Throws if no contact or several match the customer. */
  create({ customer, dueInDays, lines }: InvoiceDraft): Invoice {
    const number = inTransaction(this.database, () => {
      const contact = this.contacts.one(customer);
      const next = this.database.prepare('SELECT coalesce(max(id), 0) + 1 AS next FROM invoices').get()?.next;
      const number = `INV-${String(next).padStart(4, '0')}`;
      const { lastInsertRowid } = this.database
        .prepare('INSERT INTO invoices (number, contact_id, issued_on, due_on) VALUES (?, ?, ?, ?)')
        .run(number, contact.id, this.#today(), calendarDay(addDays(this.clock(), dueInDays)));
      const addLine = this.database.prepare('INSERT INTO invoice_lines VALUES (?, ?, ?, ?)');
      for (const { description, quantity, unitPrice } of lines)
        addLine.run(lastInsertRowid, description, quantity, centsOf(unitPrice));
      return number;
    });
    return this.get(number);
  }

  /** Throws if there is no invoice with this number, or if it is already paid. */
  markPaid(number: string): Invoice {
    const invoice = this.get(number);
    if (invoice.state === InvoiceState.Paid) throw new Error(`${invoice.number} has been paid already.`);
    this.database
      .prepare('UPDATE invoices SET paid_on = ? WHERE number = ?')
      .run(this.#today(), invoice.number);
    return this.get(invoice.number);
  }

  #today(): string {
    return calendarDay(this.clock());
  }
}
