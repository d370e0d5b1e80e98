import type { DatabaseSync } from 'node:sqlite';
import { addDays, calendarDay } from './calendar-day.js';

const CONTACTS = [
  ['Mara Lindqvist', 'mara@harbour.example', '+46 8 555 0101', 'Harbour Studio', 'customer'],
  ['Tomas Okafor', 'tomas@northfield.example', '+44 20 5550 0102', 'Northfield Bakery', 'customer'],
  ['Ines Carvalho', 'ines@atelier.example', null, 'Atelier Carvalho', 'customer'],
  ['Paul Weber', 'paul@paperworks.example', '+49 30 555 0104', 'Paperworks', 'supplier'],
  ['Yuki Tanaka', 'yuki@lanterns.example', null, 'Lantern Books', 'partner'],
] as const;

/** Days count from the first start, so that some invoices are always open, overdue and paid. */
const INVOICES = [
  { contact: 1, issued: -75, due: -45, paid: -50, lines: [['Website design', 1, 240_000]] },
  {
    contact: 2,
    issued: -40,
    due: -10,
    paid: null,
    lines: [
      ['Menu layout', 2, 18_050],
      ['Printing', 1, 9_500],
    ],
  },
  { contact: 1, issued: -12, due: 18, paid: null, lines: [['Website care', 3, 15_000]] },
  { contact: 3, issued: -5, due: 25, paid: null, lines: [['Catalogue cover', 1, 62_000]] },
] as const;

const REMINDERS = [
  ['Call Tomas about the unpaid menu layout', 1],
  ['Order paper from Paperworks', 4],
  ['Book the train to Gothenburg', 9],
] as const;

/** The sample data of a new database. */
export function insertSamples(database: DatabaseSync, today: Date): void {
  const day = (offset: number): string => calendarDay(addDays(today, offset));
  const addContact = database.prepare(
    'INSERT INTO contacts (name, email, phone, company, kind) VALUES (?, ?, ?, ?, ?)',
  );
  for (const contact of CONTACTS) addContact.run(...contact);
  const addInvoice = database.prepare(
    'INSERT INTO invoices (number, contact_id, issued_on, due_on, paid_on) VALUES (?, ?, ?, ?, ?)',
  );
  const addLine = database.prepare('INSERT INTO invoice_lines VALUES (?, ?, ?, ?)');
  for (const [index, { contact, issued, due, paid, lines }] of INVOICES.entries()) {
    const number = `INV-${String(index + 1).padStart(4, '0')}`;
    const { lastInsertRowid } = addInvoice.run(number, contact, day(issued), day(due), paid && day(paid));
    for (const line of lines) addLine.run(lastInsertRowid, ...line);
  }
  const addReminder = database.prepare('INSERT INTO reminders (text, due_on) VALUES (?, ?)');
  for (const [text, due] of REMINDERS) addReminder.run(text, day(due));
}
