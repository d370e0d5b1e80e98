import { DatabaseSync } from 'node:sqlite';
import { inject, singleton } from 'tsyringe';
import { DATABASE } from './database.js';

/** What somebody is to us. */
export enum ContactKind {
  Customer = 'customer',
  Supplier = 'supplier',
  Partner = 'partner',
}

/** A contact to add. */
export interface ContactDetails {
  readonly name: string;
  readonly email: string;
  readonly phone?: string;
  readonly company?: string;
  readonly kind: ContactKind;
}

/** A stored contact. */
export interface Contact {
  readonly id: number;
  readonly name: string;
  readonly email: string;
  readonly phone: string | null;
  readonly company: string | null;
  readonly kind: ContactKind;
}

/** The contacts of the user. */
@singleton()
export class ContactBook {
  constructor(@inject(DATABASE) private readonly database: DatabaseSync) {}

  /** Contacts whose name, address or company contains the text, ignoring case; all contacts for `''`. */
  find(text: string, limit: number): readonly Contact[] {
    const rows = this.database
      .prepare(
        `SELECT id, name, email, phone, company, kind FROM contacts
         WHERE instr(lower(concat_ws(' ', name, email, company)), lower(?)) > 0 ORDER BY name LIMIT ?`,
      )
      .all(text.trim(), limit);
    return rows as unknown as Contact[];
  }

  /** The contact that matches the text. Throws if none or several match. */
  one(text: string): Contact {
    const found = this.find(text, 5);
    const [first] = found;
    if (first !== undefined && found.length === 1) return first;
    if (first === undefined) throw new Error(`There is no contact '${text}'. Add it first.`);
    throw new Error(`'${text}' may be ${found.map(({ name }) => name).join(' or ')}. Say which.`);
  }

  /** Throws if a contact with this address exists. */
  add({ name, email, phone, company, kind }: ContactDetails): Contact {
    const known = this.database.prepare('SELECT name FROM contacts WHERE email = ?').get(email);
    if (known !== undefined) throw new Error(`${email} is in the book already, as ${known.name}.`);
    const row = this.database
      .prepare('INSERT INTO contacts (name, email, phone, company, kind) VALUES (?, ?, ?, ?, ?) RETURNING *')
      .get(name, email, phone ?? null, company ?? null, kind);
    return row as unknown as Contact;
  }
}
