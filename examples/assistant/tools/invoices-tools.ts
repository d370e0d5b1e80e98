import { ToolContext, type ToolResult, userResult } from 'toolwright';
import { Tool, Toolset } from 'toolwright/decorators';
import { ExportFolder } from '../services/export-folder.js';
import { type Invoice, InvoiceLedger, InvoiceState } from '../services/invoice-ledger.js';
import { formatMoney } from '../services/money.js';
import { asList, counted } from './as-list.js';
import { NewInvoice } from './new-invoice.js';

/** The invoices the user has sent. */
@Toolset()
export class InvoicesTools {
  constructor(
    private readonly ledger: InvoiceLedger,
    private readonly exports: ExportFolder,
  ) {}

  /**
   * List invoices, newest first. Tells their state, due date and sum.
   * @param state Only invoices in this state
   * @param customer Only invoices of this customer: a name or a company
   */
  @Tool({ annotations: { readOnly: true } })
  listInvoices(state?: InvoiceState, customer?: string): string {
    const found = this.ledger.list({ state, customer });
    if (found.length === 0) return 'There are no such invoices.';
    const sum = found.reduce((total, { totalCents }) => total + totalCents, 0);
    return asList(`${counted(found.length, 'invoice')}, together ${formatMoney(sum)}`, found.map(describe));
  }

  // Alone, so that a call after it in the same message sees what it wrote.
  /** Create an invoice for a customer */
  @Tool({ sequential: true })
  createInvoice({ customer, lines, dueInDays = 30 }: NewInvoice): ToolResult {
    return userResult(`Created ${describe(this.ledger.create({ customer, lines, dueInDays }))}.`);
  }

  /**
   * Mark an invoice as paid today
   * @param number Number of the invoice, e.g. INV-0002 @pattern ^INV-\d+$
   */
  @Tool({ sequential: true })
  markInvoicePaid(number: string): ToolResult {
    return userResult(`Paid: ${describe(this.ledger.markPaid(number))}.`);
  }

  /** Export the invoices to a CSV file */
  @Tool()
  async exportInvoices(context: ToolContext): Promise<ToolResult> {
    const invoices = this.ledger.list();
    context.progress(`writing ${invoices.length} invoices`);
    const rows = invoices.map(({ number, customer, issuedOn, dueOn, state, totalCents }) => [
      ...[number, customer, issuedOn, dueOn, state],
      totalCents / 100,
    ]);
    const header = ['number', 'customer', 'issued', 'due', 'state', 'total EUR'];
    const path = await this.exports.writeCsv('invoices', [header, ...rows]);
    return userResult(`Exported ${invoices.length} invoices to ${path}.`);
  }
}

function describe({ number, customer, dueOn, state, totalCents }: Invoice): string {
  return `${number} to ${customer}, ${formatMoney(totalCents)}, ${state}, due ${dueOn}`;
}
