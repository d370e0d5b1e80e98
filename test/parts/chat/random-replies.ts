import fc from 'fast-check';
import {
  agentAsTool,
  defineTool,
  type LLMProvider,
  type LLMStreamPart,
  type ReplyAttachment,
} from 'toolwright';

const SCHEMA = { type: 'object', properties: { n: { type: 'integer' } } } as const;
const OPTIONS = { description: 'Does it', parameters: SCHEMA };
const PLAIN_TOOLS = [
  defineTool({ name: 'plain', ...OPTIONS, execute: ({ n }) => `plain ${n}` }),
  defineTool({
    name: 'asks',
    ...OPTIONS,
    execute: async (_args, context) =>
      `${await context.ask({ message: 'Which?', schema: { type: 'string' } })}`,
  }),
  defineTool({
    name: 'fails',
    ...OPTIONS,
    execute: () => {
      throw new Error('it broke');
    },
  }),
  defineTool({ name: 'guarded', ...OPTIONS, approval: true, execute: ({ n }) => `guarded ${n}` }),
  defineTool({ name: 'client', ...OPTIONS, execution: 'client' }),
  defineTool({ name: 'careful', ...OPTIONS, execution: 'client', approval: true }),
  defineTool({
    name: 'torn',
    ...OPTIONS,
    approval: true,
    execute: async (_args, context) => {
      context.progress('begun');
      const answer = await context.ask({ message: 'Go on?', schema: { type: 'string' } });
      context.progress({ done: 2 });
      return `torn ${answer}`;
    },
  }),
  defineTool({
    name: 'busy',
    ...OPTIONS,
    execute: (_args, context) => {
      context.progress({ done: 1, total: 2 });
      return 'busy';
    },
  }),
];

/** An agent that makes one call. */
function agentThatCalls(name: string, tool: string) {
  return agentAsTool({
    name,
    description: 'Does it for you',
    parameters: SCHEMA,
    prompt: () => 'Do it',
    model: 'm',
    tools: PLAIN_TOOLS,
    provider: {
      chat: async ({ messages }) =>
        messages.at(-1)?.role === 'tool'
          ? { content: 'It is done.', toolCalls: [], finishReason: 'stop' }
          : {
              content: '',
              toolCalls: [{ id: 'inner', name: tool, arguments: { n: 1 } }],
              finishReason: 'tool_calls',
            },
    },
  });
}

/** Tools of every kind, including agents. */
export const TOOLS = [
  ...PLAIN_TOOLS,
  agentThatCalls('agent', 'plain'),
  agentThatCalls('asking_agent', 'guarded'),
];

type Piece =
  | { readonly type: 'text-delta' | 'reasoning-delta'; readonly text: string }
  | { readonly type: 'attachment'; readonly attachment: ReplyAttachment };

/** One reply of a model. */
export interface RandomReply {
  readonly pieces: readonly Piece[];
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: unknown }[];
  readonly isWritten: boolean;
  readonly end: 'whole' | 'cut' | 'breaks' | 'hangs';
}

export const randomReply: fc.Arbitrary<RandomReply> = fc.record({
  pieces: fc.array(
    fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({
          type: fc.constantFrom('text-delta' as const, 'reasoning-delta' as const),
          text: fc.constantFrom('', 'a', 'some text', '\n\ndata: x\n\n', '\u2028 😀'),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          type: fc.constant('attachment' as const),
          attachment: fc.constantFrom<ReplyAttachment>(
            { type: 'page', url: 'https://example.org/a', title: 'A' },
            { type: 'page', url: 'https://example.org/b' },
            { type: 'document', title: 'Terms', filename: 'terms.pdf' },
            { type: 'file', url: 'data:image/png;base64,iVBORw0KGgo=', mimeType: 'image/png' },
          ),
        }),
      },
    ),
    { maxLength: 5 },
  ),
  calls: fc.array(
    fc.record({
      id: fc.constantFrom('a', 'b', 'c', '', '__proto__'),
      name: fc.constantFrom(...TOOLS.map(({ name }) => name), 'unknown', '', 'constructor'),
      arguments: fc.constantFrom<unknown>({ n: 1 }, { n: 'one' }, '{"n":2}', '{"n":', null),
    }),
    { maxLength: 4 },
  ),
  isWritten: fc.boolean(),
  end: fc.oneof(
    { arbitrary: fc.constant('whole' as const), weight: 12 },
    { arbitrary: fc.constantFrom('cut' as const, 'breaks' as const, 'hangs' as const), weight: 1 },
  ),
});

/** A model that sends these replies, and then a final answer. */
export function providerOf(replies: readonly RandomReply[], onHang: () => void): LLMProvider {
  let asked = 0;
  const next = () => replies[asked++] ?? { pieces: [], calls: [], isWritten: false, end: 'whole' };
  return {
    chat: () => Promise.reject(new Error('only streams')),
    async *stream({ signal }): AsyncGenerator<LLMStreamPart, void> {
      const { pieces, calls, isWritten, end } = next();
      for (const piece of pieces) yield piece;
      for (const { id, name, arguments: args } of isWritten ? calls : []) {
        yield { type: 'call-input-start', callId: id, tool: name };
        yield { type: 'call-input-delta', callId: id, text: JSON.stringify(args) };
        yield { type: 'call-input-end', callId: id };
      }
      if (end === 'breaks') throw new Error('the line is dead, and this is a secret');
      if (end === 'hangs') {
        onHang();
        await new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
      }
      const texts = pieces.flatMap((piece) => (piece.type === 'text-delta' ? [piece.text] : []));
      const finishReason = end === 'cut' ? 'length' : calls.length > 0 ? 'tool_calls' : 'stop';
      const content = texts.join('') || (calls.length > 0 ? '' : 'done');
      yield {
        type: 'response',
        response: { content, toolCalls: calls as never, finishReason },
      };
    },
  };
}
