import { afterEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Conversations } from 'toolwright';
import { createChatHandler } from 'toolwright/chat';
import { MemoryRunStore } from 'toolwright/stores';
import { runs } from '../../setup/runs.js';
import { AgUiUser } from './ag-ui-reader.js';
import { providerOf, randomReply, TOOLS } from './random-replies.js';

const opened: Conversations[] = [];
afterEach(async () => {
  for (const conversations of opened.splice(0)) await conversations.close();
});

/** The texts and results of calls, without ids and without the positions of the client's own results. */
function saidIn({ agent }: AgUiUser): readonly object[] {
  const said = agent.messages.filter(({ role }) => role !== 'activity' && role !== 'tool');
  const results = agent.messages.flatMap((message) =>
    message.role === 'tool' ? [{ toolCallId: message.toolCallId, content: message.content }] : [],
  );
  return [...said, ...results.sort((one, other) => (one.toolCallId < other.toolCallId ? -1 : 1))];
}

/** Answers everything that is pending: interrupts and client tools. */
async function goOn(user: AgUiUser, approves: boolean): Promise<void> {
  const { outcome } = user.lastRun.at(-1) as { outcome?: { pendingToolCallIds?: readonly string[] } };
  for (const toolCallId of outcome?.pendingToolCallIds ?? [])
    user.agent.addMessage({ id: crypto.randomUUID(), role: 'tool', toolCallId, content: 'given' });
  const resume = user.interrupts.map(({ id, reason }) => ({
    interruptId: id,
    status: 'resolved' as const,
    payload: reason === 'tool_call' ? { approved: approves } : 'this one',
  }));
  await user.run(resume.length > 0 ? { resume } : {});
}

describe('createChatHandler with ag-ui', () => {
  test('streams of random turns pass AG-UI’s verification, also when they are read again', async () => {
    let streams = 0;
    const given = fc.record({
      replies: fc.array(randomReply, { maxLength: 5 }),
      approves: fc.boolean(),
      isAborted: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(given, async ({ replies, approves, isAborted }) => {
        const provider = providerOf(replies, () => void conversations.abort('t1'));
        const conversations = new Conversations({
          store: new MemoryRunStore(),
          config: { provider, model: 'm', tools: TOOLS, maxIterations: 5, onLimit: 'return' },
        });
        opened.push(conversations);
        const handler = createChatHandler({
          conversations,
          protocol: 'ag-ui',
          authenticate: ({ headers }) => headers.get('x-user'),
        });
        const user = new AgUiUser(handler);
        await user.say('Hi', 'm1');
        expect(user.violations).toEqual([]);
        for (let turn = 0; turn < 20; turn += 1) {
          const view = await conversations.snapshot('t1');
          const again = new AgUiUser(handler);
          await again.connect();
          expect(again.violations).toEqual([]);
          expect(saidIn(again)).toEqual(saidIn(user));
          if (view?.status !== 'suspended') break;
          expect(user.interrupts).toEqual(again.interrupts);
          if (isAborted) {
            await conversations.abort('t1');
            await conversations.idle('t1');
          }
          await goOn(user, approves);
          expect(user.violations).toEqual([]);
          if (isAborted) break;
        }
        streams += user.runs.length;
        expect(JSON.stringify(user.runs)).not.toContain('a secret');
        await conversations.close();
      }),
      { numRuns: runs(100) },
    );
    expect(streams).toBeGreaterThanOrEqual(runs(100));
  });
});
