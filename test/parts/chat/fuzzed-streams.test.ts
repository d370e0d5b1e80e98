import { afterEach, describe, expect, test } from '@jest/globals';
import type { UIMessage } from 'ai';
import fc from 'fast-check';
import { Conversations } from 'toolwright';
import { createChatHandler } from 'toolwright/chat';
import { MemoryRunStore } from 'toolwright/stores';
import { runs } from '../../setup/runs.js';
import { chatOf, readMessage, said } from './chat-reader.js';
import { providerOf, randomReply, TOOLS } from './random-replies.js';

const opened: Conversations[] = [];
afterEach(async () => {
  for (const conversations of opened.splice(0)) await conversations.close();
});

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

/** A message as JSON, without empty steps, which the AI SDK drops. */
function saidIn(message: unknown): unknown {
  const read = JSON.parse(JSON.stringify(message)) as UIMessage;
  const { length } = read.parts;
  return {
    ...read,
    parts: read.parts.filter(({ type }, index) => type !== 'step-start' || index < length - 1),
  };
}

describe('createChatHandler', () => {
  test('streams random turns that the AI SDK can read, also when they are read again', async () => {
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
        const kept = (await (await chat.get('c1', {}, 'messages')).json()) as readonly unknown[];
        const isOver = (await conversations.idle('c1'))?.status === 'idle';
        if (isOver && !isAborted) expect(saidIn(kept[1])).toEqual(saidIn(read.message));
        await conversations.close();
      }),
      { numRuns: runs(100) },
    );
    expect(streams).toBeGreaterThanOrEqual(runs(100));
  });
});
