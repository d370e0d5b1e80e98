import type { Message, ToolCall, ToolSchema } from 'toolwright';
import { OfflineProvider } from 'toolwright/offline';

type Properties = ToolSchema['function']['parameters']['properties'];

/** A tool definition as it is sent to a model. */
export function offer(
  name: string,
  description: string,
  properties: Properties = {},
  required: string[] = [],
) {
  const parameters = { type: 'object', properties, required };
  return { type: 'function', function: { name, description, parameters } } as const;
}

const text = (description: string) => ({ type: 'string', description });

/** Tools of an assistant for notes and invoices. */
export const ASSISTANT_TOOLS: readonly ToolSchema[] = [
  offer('calculate', 'Evaluate an arithmetic expression.', { expression: text('e.g. 2 * (3 + 4)') }, [
    'expression',
  ]),
  offer('get_current_time', 'Get the current date and time', { timezone: text('IANA time zone') }),
  offer(
    'search_notes',
    'Search the notes by words in title or text',
    { query: text('Words to look for'), limit: { type: 'integer', default: 10 } },
    ['query'],
  ),
  offer(
    'add_note',
    'Write a new note',
    { title: text('Title of the note'), text: text('Text of the note') },
    ['title', 'text'],
  ),
  offer('list_invoices', 'List invoices, newest first', {
    status: { type: 'string', enum: ['open', 'paid', 'overdue'] },
    customer: text('Name of the customer'),
  }),
];

/** Sends one request to the offline provider; dates without a year are in 2024. */
export function ask(messages: string | readonly Message[], tools: readonly ToolSchema[] = ASSISTANT_TOOLS) {
  const history: readonly Message[] =
    typeof messages === 'string' ? [{ role: 'user', content: messages }] : messages;
  return new OfflineProvider({ year: 2024 }).chat({
    model: 'offline',
    messages: history,
    tools,
    options: {},
  });
}

/** The calls that a text leads to, as `[name, arguments]`. */
export async function callsFor(prompt: string, tools: readonly ToolSchema[] = ASSISTANT_TOOLS) {
  const { toolCalls } = await ask(prompt, tools);
  return toolCalls.map((call: ToolCall) => [call.name, call.arguments]);
}
