import { afterEach, describe, expect, test } from '@jest/globals';
import type { UIMessage } from 'ai';
import fc from 'fast-check';
import { Conversations, defineTool, type LLMProvider, type LLMStreamPart } from 'toolwright';
import { createChatHandler } from 'toolwright/chat';
import { MemoryRunStore } from 'toolwright/stores';
import { chatOf, readMessage, said } from './chat-reader.js';

const opened: Conversations[] = [];
afterEach(async () => {
  for (const conversations of opened.splice(0)) await conversations.close();
});

const SCHEMA = { type: 'object', properties: { n: { type: 'integer' } } } as const;
const OPTIONS = { description: 'Does it', parameters: SCHEMA };
const TOOLS = [
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
    name: 'busy',
    ...OPTIONS,
    execute: (_args, context) => {
      context.progress({ done: 1, total: 2 });
      return 'busy';
    },
  }),
];

interface RandomReply {
  readonly pieces: readonly { readonly type: 'text-delta' | 'reasoning-delta'; readonly text: string }[];
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: unknown }[];
  readonly isWritten: boolean;
  readonly end: 'whole' | 'cut' | 'breaks' | 'hangs';
}

const randomReply: fc.Arbitrary<RandomReply> = fc.record({
  pieces: fc.array(
    fc.record({
      type: fc.constantFrom('text-delta' as const, 'reasoning-delta' as const),
      text: fc.constantFrom('', 'a', 'some text', '\n\ndata: x\n\n', '\u2028 😀'),
    }),
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

function providerOf(replies: readonly RandomReply[], onHang: () => void): LLMProvider {
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
      const texts = pieces.filter(({ type }) => type === 'text-delta').map(({ text }) => text);
      const finishReason = end === 'cut' ? 'length' : calls.length > 0 ? 'tool_calls' : 'stop';
      const content = texts.join('') || (calls.length > 0 ? '' : 'done');
      yield {
        type: 'response',
        response: { content, toolCalls: calls as never, finishReason },
      };
    },
  };
}

/** The client's message with everything answered that it can answer. */
function answered(message: UIMessage, approves: boolean): UIMessage {
  const parts = message.parts.map((part) => {
    const { state, approval } = part as { state?: string; approval?: { id: string } };
    if (state === 'approval-requested')
      return { ...part, state: 'approval-responded', approval: { ...approval, approved: approves } };
    return state === 'input-available' ? { ...part, state: 'output-available', output: 'given' } : part;
  });
  return { ...message, parts: parts as UIMessage['parts'] };
}

describe('createChatHandler', () => {
  test('streams of random turns are what the AI SDK reads, also when they are read again', async () => {
    let streams = 0;
    const given = fc.record({
      replies: fc.array(randomReply, { maxLength: 5 }),
      approves: fc.boolean(),
      isAborted: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(given, async ({ replies, approves, isAborted }) => {
        const provider = providerOf(replies, () => void conversations.abort('c1'));
        const conversations = new Conversations({
          store: new MemoryRunStore(),
          config: { provider, model: 'm', tools: TOOLS, maxIterations: 5, onLimit: 'return' },
        });
        opened.push(conversations);
        const chat = chatOf(
          createChatHandler({ conversations, authenticate: ({ headers }) => headers.get('x-user') }),
        );
        let read = await readMessage(await chat.post({ id: 'c1', messages: [said('Hi', 'm1')] }));
        streams += 1;
        expect(read.violations).toEqual([]);
        for (let turn = 0; turn < 20; turn += 1) {
          const view = await conversations.snapshot('c1');
          if (view?.status !== 'suspended') break;
          const again = await readMessage(await chat.get('c1'));
          expect(again.violations).toEqual([]);
          expect(again.message).toEqual(read.message);
          if (isAborted) await conversations.abort('c1');
          const reply = await chat.post({
            id: 'c1',
            messages: [answered(read.message as UIMessage, approves)],
          });
          if (isAborted && reply.status === 409) break;
          expect(reply.status).toBe(200);
          read = await readMessage(reply, answered(read.message as UIMessage, approves));
          streams += 1;
          expect(read.violations).toEqual([]);
        }
        expect(JSON.stringify(read.chunks)).not.toContain('a secret');
        await conversations.close();
      }),
      { numRuns: 1000 },
    );
    expect(streams).toBeGreaterThan(1000);
  }, 120_000);
});
