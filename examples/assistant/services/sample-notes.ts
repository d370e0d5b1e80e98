/** The notes of a new folder, by name. */
export const SAMPLE_NOTES: Readonly<Record<string, string>> = {
  'invoicing-checklist': `# Invoicing checklist

- Send invoices on the first Monday of the month.
- Payment term: 30 days; for new customers 14.
- Put the order number of the customer on it.
`,
  'call-with-mara': `# Call with Mara, Harbour Studio

Mara wants the new start page before the summer.
Her bookkeeping changes: invoices go to accounts@harbour.example from now on.
`,
  'yearly-review': `# Yearly review

Two customers asked for smaller invoices, sent more often. Worth trying.
Most new work came through Lantern Books.
`,
  'trip-to-lisbon': `# Trip to Lisbon

Train from the airport, then tram 28. Ines knows a printer in Alfama.
Bring samples of the catalogue cover.
`,
  'lentil-soup': `# Lentil soup

Onion, carrot, cumin, red lentils, stock. Twenty minutes. Lemon at the end.
`,
};
