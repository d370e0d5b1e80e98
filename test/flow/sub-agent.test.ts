import { describe, expect, test } from '@jest/globals';
import {
  Conversation,
  defineTool,
  type Message,
  resumeToolLoop,
  runToolLoop,
  type ToolContext,
  type ToolLoopResult,
  type ToolResult,
} from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';

const hello: readonly Message[] = [{ role: 'user', content: 'Hello' }];
const pay = defineTool({ name: 'pay', description: 'Pay', approval: true, execute: () => 'paid' });

/** A sub-agent run whose only tool needs an approval. */
function innerRun(content = 'inner done'): Promise<ToolLoopResult> {
  const provider = new ScriptedProvider([{ toolCalls: [{ id: 'i1', name: 'pay' }] }, { content }]);
  return runToolLoop({ provider, model: 'm', tools: [pay] }, hello);
}

async function outerRun(
  names: readonly string[],
  execute: () => unknown,
): Promise<{ readonly run: ToolLoopResult; readonly answers: readonly string[] }> {
  const tools = [
    defineTool({ name: 'research', description: 'Research', execute }),
    defineTool({ name: 'other', description: 'Other', execute: async () => 'other' }),
  ];
  const calls = names.map((name, index) => ({ id: `o${index}`, name }));
  const provider = new ScriptedProvider([{ toolCalls: calls }, { content: 'outer done' }]);
  const run = await runToolLoop({ provider, model: 'm', tools }, hello);
  const answers = run.messages.flatMap((message) => (message.role === 'tool' ? [message.content] : []));
  return { run, answers };
}

const LEFT = /'research' ran a model of its own, and that run is waiting for an answer about 'pay'/;

describe('a tool that runs its own loop', () => {
  test.each([
    ['returns its text', async () => (await innerRun()).content],
    ['returns the inner run itself', () => innerRun()],
    [
      'starts it after other work',
      async () => {
        await new Promise(setImmediate);
        return (await innerRun()).content;
      },
    ],
  ])('and %s waits for the answers that the inner run needs', async (_how, execute) => {
    const { run } = await outerRun(['research'], execute);
    expect(run.status).toBe('suspended');
    expect(run.pending).toMatchObject([
      { kind: 'approval', tool: 'pay', callId: 'i1', path: [{ callId: 'o0', tool: 'research' }] },
    ]);
  });

  test('through a Conversation gives an error that names the inner tool', async () => {
    const inner = new Conversation({
      provider: new ScriptedProvider([{ toolCalls: [{ id: 'i1', name: 'pay' }] }]),
      model: 'm',
      tools: [pay],
    });
    const { run, answers } = await outerRun(['research'], async () => (await inner.prompt('Hi')).content);
    expect(run.status).toBe('completed');
    expect(answers).toEqual([expect.stringMatching(LEFT)]);
    expect(run.toolCalls).toMatchObject([{ status: 'error', result: { error: { code: 511 } } }]);
    expect(inner.pending).toHaveLength(1);
  });

  test.each([
    ['a background tool', { background: true, execute: async () => (await innerRun()).content }],
    [
      'work started by its method',
      {
        execute: (_args: unknown, context: ToolContext) =>
          context.background(async () => (await innerRun()).content),
      },
    ],
  ])('as %s completes with that error', async (_how, behaviour) => {
    const research = defineTool({ name: 'research', description: 'Research', ...behaviour });
    const call = { toolCalls: [{ id: 'o1', name: 'research' }] };
    const provider = new ScriptedProvider([call, { content: 'outer done' }]);
    const completed = Promise.withResolvers<ToolResult>();
    const run = await runToolLoop(
      {
        provider,
        model: 'm',
        tools: [research],
        onAsyncResult: (_context, result) => completed.resolve(result),
      },
      hello,
    );
    expect(run.toolCalls).toMatchObject([{ status: 'started' }]);
    expect(await completed.promise).toMatchObject({
      isError: true,
      forLLM: expect.stringMatching(LEFT),
      error: { code: 511 },
    });
  });

  test('and then starts background work keeps its acknowledgement; the completion reports the inner tool', async () => {
    const execute = async (_args: unknown, context: ToolContext) => {
      const inner = await innerRun();
      return context.background(() => inner.content, 'Started, I will report back');
    };
    const research = defineTool({ name: 'research', description: 'Research', execute });
    const call = { toolCalls: [{ id: 'o1', name: 'research' }] };
    const provider = new ScriptedProvider([call, { content: 'outer done' }]);
    const completed = Promise.withResolvers<ToolResult>();
    const onAsyncResult = (_context: unknown, result: ToolResult) => completed.resolve(result);
    const run = await runToolLoop({ provider, model: 'm', tools: [research], onAsyncResult }, hello);
    expect(run.toolCalls).toMatchObject([
      { status: 'started', result: { forLLM: 'Started, I will report back', isError: false } },
    ]);
    expect((await completed.promise).forLLM).toMatch(LEFT);
  });

  test('does not suspend its siblings', async () => {
    const { run } = await outerRun(['other', 'research', 'other'], async () => (await innerRun()).content);
    expect(run.toolCalls).toMatchObject([{ status: 'success' }, { status: 'success' }]);
    expect(run.pending).toHaveLength(1);
  });

  test('waits in the next call, after a first call without an inner run', async () => {
    let turn = 0;
    const execute = () => {
      turn += 1;
      return turn === 1 ? 'at once' : innerRun().then(({ content }) => content);
    };
    const tools = [defineTool({ name: 'research', description: 'Research', execute })];
    const call = (id: string) => ({ toolCalls: [{ id, name: 'research' }] });
    const provider = new ScriptedProvider([call('a'), call('b'), { content: 'done' }]);
    const run = await runToolLoop({ provider, model: 'm', tools }, hello);
    expect(run.toolCalls[0]).toMatchObject({ status: 'success' });
    expect(run).toMatchObject({ status: 'suspended', pending: [{ path: [{ callId: 'b' }] }] });
  });

  test('may resume the inner run itself', async () => {
    const { answers } = await outerRun(['research'], async () => {
      const run = await innerRun();
      const provider = new ScriptedProvider([{ content: 'inner done' }]);
      const given = (run.pending ?? []).map(({ id }) => ({ id, approved: true }));
      const resumed = await resumeToolLoop({ provider, model: 'm', tools: [pay] }, run.state, given);
      return resumed.content;
    });
    expect(answers).toEqual(['inner done']);
  });
});
