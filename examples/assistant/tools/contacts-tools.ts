import { type ToolResult, userResult } from 'toolwright';
import { Tool, Toolset } from 'toolwright/decorators';
import { type Contact, ContactBook, ContactKind } from '../services/contact-book.js';
import { asList, counted } from './as-list.js';
import { NewContact } from './new-contact.js';

/** The people the user works with. */
@Toolset()
export class ContactsTools {
  constructor(private readonly contacts: ContactBook) {}

  /**
   * Find contacts. Tells their email address, phone number and company.
   * @param contact Part of a person’s name, email address or company; empty for everybody @maxLength 100
   * @param limit At most so many contacts @integer @minimum 1 @maximum 100
   */
  @Tool({ annotations: { readOnly: true } })
  findContacts(contact = '', limit = 10): string {
    const found = this.contacts.find(contact, limit);
    if (found.length === 0) return `There is no contact '${contact}'.`;
    return asList(counted(found.length, 'contact'), found.map(describe));
  }

  /** Add a person to the contacts */
  @Tool({ sequential: true })
  addContact({ kind = ContactKind.Customer, ...details }: NewContact): ToolResult {
    return userResult(`Added ${describe(this.contacts.add({ ...details, kind }))}.`);
  }
}

function describe({ name, email, phone, company, kind }: Contact): string {
  const parts = [company ? `${name} (${company})` : name, kind, email, phone];
  return parts.filter((part) => part !== null).join(', ');
}
