import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { FinishReason, LLMProvider, LLMResponse } from 'toolwright';
import {
  type AssistantHandler,
  type ChatMessage,
  type ConversationStore,
  createAssistantHandler,
  MemoryConversationStore,
  SqliteConversationStore,
} from 'toolwright/satellite';
import { runs } from '../../setup/runs.js';
import { requestText } from './assistant-server.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pending-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A request to a conversation, and the reply of the model. */
interface Step {
  readonly conversation: string;
  readonly messages: readonly ChatMessage[];
  readonly reply: { readonly content: string; readonly finishReason: FinishReason } | 'failure';
  readonly asEvents: boolean;
  /** The server is restarted before this step. */
  readonly restart: boolean;
}

const step: fc.Arbitrary<Step> = fc.record({
  conversation: fc.constantFrom('c1', 'c2'),
  messages: fc.array(
    fc.oneof(
      fc.string({ minLength: 1 }).map((text): ChatMessage => ({ role: 'user', content: `u${text}` })),
      fc.string().map((content): ChatMessage => ({ role: 'tool_result', name: 'any', content })),
    ),
    { minLength: 1, maxLength: 3 },
  ),
  reply: fc.oneof(
    fc.constant('failure' as const),
    fc.record({
      content: fc.oneof(
        fc.string(),
        fc.constantFrom(requestText('a'), requestText('b', { x: 1 }), '{"a":1}'),
      ),
      finishReason: fc.constantFrom<FinishReason[]>('stop', 'stop', 'length', 'tool_calls'),
    }),
  ),
  asEvents: fc.boolean(),
  restart: fc.boolean(),
});

/** A minimal implementation of the protocol. */
class Model {
  readonly #histories = new Map<string, { role: string; content: string }[]>();
  readonly #pending = new Set<string>();

  /** The messages that the provider must receive, or `undefined` if it must not be called. */
  given({ conversation, messages }: Step) {
    const isPending = this.#pending.has(conversation);
    const honoured = messages.filter(({ role }) => role === 'user' || isPending);
    if (honoured.length === 0) return undefined;
    const history = this.#histories.get(conversation) ?? [];
    const marked = honoured.map(({ role, content }) => ({
      role: 'user',
      content: role === 'user' ? content : `[tool_result:any]\n${content}`,
    }));
    return [...history, ...marked];
  }

  reply({ conversation, reply }: Step, given: { role: string; content: string }[]): void {
    if (reply === 'failure') return;
    this.#histories.set(conversation, [...given, { role: 'assistant', content: reply.content }]);
    const isRequest = reply.content.startsWith('{"tool_request"') && reply.finishReason !== 'length';
    if (isRequest) this.#pending.add(conversation);
    else this.#pending.delete(conversation);
  }

  isPending(conversation: string): boolean {
    return this.#pending.has(conversation);
  }
}

/** Runs a step and returns the messages that the provider received. */
async function take(open: (provider: LLMProvider) => AssistantHandler, step: Step) {
  let given: unknown;
  const provider: LLMProvider = {
    async chat({ messages }): Promise<LLMResponse> {
      given = messages;
      if (step.reply === 'failure') throw new Error('down');
      return { ...step.reply, toolCalls: [] };
    },
  };
  const handler = open(provider);
  const headers = {
    'content-type': 'application/json',
    accept: step.asEvents ? 'text/event-stream' : 'application/json',
  };
  const body = JSON.stringify({ conversation_id: step.conversation, messages: step.messages });
  const response = await handler(new Request('http://localhost/v1/chat', { method: 'POST', headers, body }));
  const text = await response.text();
  const state = await handler(new Request(`http://localhost/v1/chat/${step.conversation}`));
  return { given, status: response.status, text, state: (await state.json()) as { tool_request?: unknown } };
}

async function agree(steps: readonly Step[], open: () => ConversationStore): Promise<void> {
  const model = new Model();
  let store = open();
  for (const one of steps) {
    if (one.restart) store = open();
    const current = store;
    const expected = model.given(one);
    const { given, status, text, state } = await take(
      (provider) => createAssistantHandler({ provider, model: 'm', store: current }),
      one,
    );
    expect(given).toEqual(expected);
    if (expected !== undefined) model.reply(one, expected);
    const hasFailed = expected !== undefined && one.reply === 'failure';
    expect(status).toBe(hasFailed && !one.asEvents ? 502 : 200);
    expect('tool_request' in state).toBe(model.isPending(one.conversation));
    if (!hasFailed) expect(text.includes('"tool_request":{')).toBe(model.isPending(one.conversation));
  }
}

test('after any sequence of requests, results, orphans and failures the server has the state of the protocol', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
      const store = new MemoryConversationStore();
      await agree(steps, () => store);
    }),
    { numRuns: runs(150) },
  );
});

test('the same with an SQLite file and restarts in between', async () => {
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 10 }), async (steps) => {
      run += 1;
      const file = join(folder, `${run}.db`);
      const opened: SqliteConversationStore[] = [];
      await agree(steps, () => {
        opened.at(-1)?.close();
        const store = new SqliteConversationStore({ path: file });
        opened.push(store);
        return store;
      });
      opened.at(-1)?.close();
    }),
    { numRuns: runs(30) },
  );
});
