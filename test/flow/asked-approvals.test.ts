import { afterEach, describe, expect, test } from '@jest/globals';
import {
  type Answer,
  type ApprovalOptions,
  Conversations,
  defineTool,
  discoverTools,
  type Message,
  resumeToolLoop,
  runToolLoop,
  Tool,
  type ToolLoopConfig,
  type ToolLoopResult,
  Toolset,
} from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';

const hello: readonly Message[] = [{ role: 'user', content: 'Pay' }];

function setup(
  approval: ApprovalOptions,
  more: Pick<ToolLoopConfig, 'answerWithinMs' | 'onExpiry'> = {},
  amount = 100,
) {
  const ran: unknown[] = [];
  const pay = defineTool({
    name: 'pay',
    description: 'Pay',
    parameters: { type: 'object', properties: { amount: { type: 'integer' } } } as const,
    approval,
    execute: (args) => `paid ${ran.push(args)}`,
  });
  const provider = new ScriptedProvider([
    { toolCalls: [{ name: 'pay', arguments: { amount } }] },
    { content: 'Done.' },
  ]);
  const config = { provider, model: 'm', tools: [pay], ...more };
  return { ran, config, pay };
}

function all(run: Pick<ToolLoopResult, 'pending'>, answer: object): readonly Answer[] {
  return (run.pending ?? []).map(({ id }) => ({ id, ...answer }) as Answer);
}

function sent<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value));
}

const opened: Conversations[] = [];
afterEach(async () => {
  for (const conversations of opened.splice(0)) await conversations.close();
});

describe('@Tool({ approval })', () => {
  test('adds title, description, risk and permitted decisions to the pending approval', async () => {
    @Toolset()
    class Bank {
      @Tool({
        description: 'Pay',
        approval: {
          title: 'Pay an invoice',
          description: ({ amount }) => `${amount} EUR leave the account.`,
          risk: 'high',
          decisions: ['approve', 'refuse'],
        },
      })
      pay(amount: number) {
        return amount;
      }
    }
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'pay', arguments: { amount: 7 } }] },
      { content: 'Done.' },
    ]);
    const config = { provider, model: 'm', tools: discoverTools({ toolsets: [Bank] }) };
    const run = await runToolLoop(config, hello);
    expect(run.pending).toEqual([
      {
        id: expect.stringMatching(/^approval_/),
        callId: 'call_1',
        kind: 'approval',
        tool: 'pay',
        arguments: { amount: 7 },
        title: 'Pay an invoice',
        description: '7 EUR leave the account.',
        risk: 'high',
        decisions: ['approve', 'refuse'],
      },
    ]);
    const edited = all(run, { approved: true, arguments: { amount: 8 } });
    await expect(resumeToolLoop(config, sent(run.state), edited)).rejects.toMatchObject({
      name: 'InvalidAnswer',
      message: expect.stringContaining('its tool allows only approve or refuse, not edit'),
    });
    const done = await resumeToolLoop(config, sent(run.state), all(run, { approved: true }));
    expect(done.toolCalls).toMatchObject([{ status: 'success', arguments: { amount: 7 } }]);
  });

  test.each([
    [['approve'], { approved: false }, 'refuse'],
    [['edit', 'refuse'], { approved: true }, 'approve'],
    [['approve', 'refuse'], { approved: true, arguments: { amount: 1 } }, 'edit'],
  ] as const)('accepts %j only, and rejects the answer %j', async (decisions, answer, name) => {
    const { config, ran } = setup({ decisions });
    const run = await runToolLoop(config, hello);
    await expect(resumeToolLoop(config, run.state, all(run, answer))).rejects.toMatchObject({
      name: 'InvalidAnswer',
      message: expect.stringContaining(`, not ${name}`),
    });
    expect(ran).toEqual([]);
  });

  test('rejects an edit that the tool no longer accepts', async () => {
    const { config, ran, pay } = setup({ title: 'Pay' });
    const run = await runToolLoop(config, hello);
    const stricter = { ...config, tools: [{ ...pay, approval: { decisions: ['approve' as const] } }] };
    const edited = all(run, { approved: true, arguments: { amount: 1 } });
    await expect(resumeToolLoop(stricter, run.state, edited)).rejects.toMatchObject({
      name: 'InvalidAnswer',
      message: expect.stringContaining('its tool allows no edits'),
    });
    expect(ran).toEqual([]);
  });

  test('does not ask if `when` returns false, and asks if it throws', async () => {
    const when = ({ amount }: { amount?: unknown }) => {
      if (amount === 13) throw new Error('unlucky');
      return Number(amount) > 50;
    };
    expect((await runToolLoop(setup({ when }, {}, 50).config, hello)).status).toBe('completed');
    expect((await runToolLoop(setup({ when }, {}, 51).config, hello)).status).toBe('suspended');
    expect((await runToolLoop(setup({ when }, {}, 13).config, hello)).status).toBe('suspended');
    expect((await runToolLoop(setup({ when: false }).config, hello)).status).toBe('completed');
    expect((await runToolLoop(setup({}).config, hello)).status).toBe('suspended');
  });

  test('asks without a description if the function throws', async () => {
    const description = () => {
      throw new Error('no words');
    };
    const run = await runToolLoop(setup({ title: 'Pay', description }).config, hello);
    expect(run.pending).toMatchObject([{ title: 'Pay' }]);
    expect(run.pending?.[0]).not.toHaveProperty('description');
  });

  test.each<[string, object, string]>([
    ['an unknown decision', { decisions: ['aprove'] }, 'decisions'],
    ['no decisions', { decisions: [] }, 'decisions'],
    ['an unknown risk', { risk: 'huge' }, 'risk'],
    ['a misspelt option', { titel: 'Pay' }, 'title'],
    ['an invalid time', { expiresInMs: '1h' }, 'expiresInMs'],
  ])('throws for %s', (_what, approval, told) => {
    const options = { name: 'pay', description: 'Pay', approval: approval as ApprovalOptions };
    expect(() => defineTool({ ...options, execute: () => 1 })).toThrow(told);
  });
});

describe('expiresAt', () => {
  test('is in the pending call; a later answer is rejected, and the model is informed', async () => {
    const { config, ran } = setup({ expiresInMs: 20 });
    const before = Date.now();
    const run = await runToolLoop(config, hello);
    const expiresAt = Date.parse(run.pending?.[0]?.expiresAt ?? '');
    expect(expiresAt).toBeGreaterThanOrEqual(before + 20);
    while (Date.now() <= expiresAt) await new Promise((resolve) => setTimeout(resolve, 5));
    await expect(resumeToolLoop(config, sent(run.state), all(run, { approved: true }))).rejects.toMatchObject(
      {
        name: 'InvalidAnswer',
        message: expect.stringContaining('the time for an answer ended at'),
      },
    );
    expect(ran).toEqual([]);
    const done = await resumeToolLoop(config, sent(run.state), []);
    expect(done).toMatchObject({ status: 'completed', toolCalls: [{ status: 'refused' }] });
    expect(done.toolCalls[0]?.result.error).toMatchObject({ name: 'AnswerExpired', code: 540 });
    expect(done.messages.at(-2)?.content).toContain('it was not approved until 20');
    expect(ran).toEqual([]);
  });

  test('ends the run if onExpiry is end', async () => {
    const { config, ran } = setup({}, { answerWithinMs: 1, onExpiry: 'end' });
    const run = await runToolLoop(config, hello);
    const at = Date.parse(run.pending?.[0]?.expiresAt ?? '');
    while (Date.now() <= at) await new Promise((resolve) => setTimeout(resolve, 2));
    const done = await resumeToolLoop(config, run.state, []);
    expect(done).toMatchObject({ status: 'failed', error: { name: 'AnswerExpired' } });
    expect(done.messages.at(-1)).toMatchObject({ role: 'tool' });
    expect(ran).toEqual([]);
  });

  test('a run with an expired approval still waits for calls that can be answered', async () => {
    const ask = defineTool({
      name: 'ask',
      description: 'Asks',
      execute: (_args, context) => context.ask({ message: 'Which?', expiresInMs: 600_000 }),
    });
    const { config, pay } = setup({ expiresInMs: 1 });
    const provider = new ScriptedProvider([
      {
        toolCalls: [
          { name: 'pay', arguments: {} },
          { name: 'ask', arguments: {} },
        ],
      },
      { content: 'Done.' },
    ]);
    const both = { ...config, provider, tools: [pay, ask] };
    const run = await runToolLoop(both, hello);
    const at = Date.parse(run.pending?.[0]?.expiresAt ?? '');
    while (Date.now() <= at) await new Promise((resolve) => setTimeout(resolve, 2));
    const next = await resumeToolLoop(both, sent(run.state), []);
    expect(next.pending).toMatchObject([{ kind: 'question', tool: 'ask' }]);
    const done = await resumeToolLoop(both, sent(next.state), all(next, { value: 'this' }));
    expect(done.toolCalls).toMatchObject([{ status: 'refused' }, { status: 'success' }]);
  });

  test('an expired approval lets a conversation continue by itself', async () => {
    const { config, ran } = setup({ expiresInMs: 50 });
    const conversations = new Conversations({ store: new MemoryRunStore(), config, pollMs: 3_600_000 });
    opened.push(conversations);
    await conversations.prompt('c1', 'Pay');
    for await (const { event } of conversations.events('c1')) if (event.type === 'turn-end') break;
    expect((await conversations.snapshot('c1'))?.messages.at(-1)?.content).toBe('Done.');
    expect(ran).toEqual([]);
  });
});
