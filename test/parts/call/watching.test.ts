import { expect, test } from '@jest/globals';
import {
  type CallWatcher,
  defineTool,
  resumeToolLoop,
  runToolLoop,
  ToolDeclarationError,
  ToolRegistry,
} from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';

function registry() {
  return new ToolRegistry().register(
    defineTool({
      name: 'add',
      description: 'Adds',
      parameters: {
        type: 'object',
        properties: { a: { type: 'number' }, b: { type: 'number' } },
        required: ['a', 'b'],
      },
      execute: ({ a, b }: { a: number; b: number }) => a + b,
    }),
  );
}

/** Records the events it receives. */
function watcher(seen: unknown[]): CallWatcher {
  return {
    async aroundCall({ request, make }) {
      const steps: string[] = [];
      const invocation = await make({ onStep: (step) => steps.push(step) });
      seen.push({ tool: request.name, status: invocation.status, steps, text: invocation.result.forLLM });
      return invocation;
    },
  };
}

const STEPS = ['find', 'check', 'allow', 'run', 'write'];

test('ToolRegistry.watch reports every call of any caller, with its steps', async () => {
  const tools = registry();
  const seen: unknown[] = [];
  tools.watch(watcher(seen));
  const args = { a: 1, b: 2 };
  expect((await tools.execute('add', args)).forLLM).toBe('3');
  expect((await tools.executeWithContext('add', args, { chatId: 'c' })).forLLM).toBe('3');
  expect((await tools.call({ name: 'add', arguments: args })).content).toBe('3');
  await tools.invoke({ id: 'call_9', name: 'add', arguments: args });
  await tools.view({ allow: ['add'] }).execute('add', args);
  const provider = new ScriptedProvider([
    { toolCalls: [{ name: 'add', arguments: args }] },
    { content: 'Three' },
  ]);
  await runToolLoop({ provider, model: 'm', tools }, [{ role: 'user', content: 'Add' }]);
  expect(seen).toEqual(Array(6).fill({ tool: 'add', status: 'settled', steps: STEPS, text: '3' }));
});

test('ToolRegistry.watch reports rejected calls and calls of unknown tools', async () => {
  const tools = registry();
  const seen: unknown[] = [];
  tools.watch(watcher(seen));
  await tools.execute('add', { a: 'x', b: 2 });
  await tools.execute('gone', {});
  expect(seen).toMatchObject([{ steps: ['find', 'check', 'write'] }, { steps: ['write'] }]);
});

test('ToolRegistry.watch allows a watcher to pause and refuse a call', async () => {
  const tools = registry();
  let release: () => void = () => {};
  tools.watch({
    aroundCall: async ({ make }) => {
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return make({ policy: () => ({ allow: false, reason: 'not now' }) });
    },
  });
  let isOver = false;
  const call = tools.execute('add', { a: 1, b: 2 }).finally(() => {
    isOver = true;
  });
  await new Promise(setImmediate);
  expect(isOver).toBe(false);
  release();
  expect((await call).forLLM).toContain('not now');
});

test('ToolRegistry.watch stops with the returned function and allows one watcher at a time', async () => {
  const tools = registry();
  const seen: unknown[] = [];
  const end = tools.watch(watcher(seen));
  expect(() => tools.watch(watcher(seen))).toThrow(ToolDeclarationError);
  expect(() => tools.view().watch(watcher(seen))).toThrow('the registry already has an inspector');
  end();
  await tools.execute('add', { a: 1, b: 2 });
  expect(seen).toEqual([]);
  const second = tools.watch(watcher(seen));
  end();
  await tools.execute('add', { a: 1, b: 2 });
  expect(seen).toHaveLength(1);
  second();
});

test('ToolRegistry.watch shows runs with their events, and streams for nobody', async () => {
  const tools = new ToolRegistry().register(
    defineTool({ name: 'pay', description: 'Pays', approval: true, execute: () => 'paid' }),
  );
  const heard: string[] = [];
  const runs: unknown[] = [];
  tools.watch({
    aroundCall: ({ make }) => make(),
    aroundRun: ({ runId, messages }: { runId: string; messages: readonly unknown[] }) => {
      runs.push([runId, messages.length]);
      return ({ type }: { type: string }) => heard.push(type);
    },
  } as CallWatcher);
  let isStreamed = false;
  const script = new ScriptedProvider([{ toolCalls: [{ name: 'pay' }] }, { content: 'Done' }]);
  const provider = {
    chat: script.chat.bind(script),
    stream: (request: Parameters<typeof script.stream>[0]) => {
      isStreamed = true;
      return script.stream(request);
    },
  };
  const config = { provider, model: 'm', tools };
  const { state, pending = [] } = await runToolLoop(config, [{ role: 'user', content: 'Pay' }]);
  const answers = pending.map(({ id }) => ({ id, approved: true }));
  const { content } = await resumeToolLoop(config, state, answers);
  expect([content, isStreamed]).toEqual(['Done', false]);
  expect(runs).toEqual([
    [state?.runId, 1],
    [state?.runId, 1],
  ]);
  expect(heard).toEqual([
    ...['run-start', 'step-start', 'reply-end', 'call-start', 'call-suspended', 'step-end', 'run-end'],
    ...['run-start', 'call-start', 'call-end', 'step-start', 'reply-end', 'step-end', 'run-end'],
  ]);
});
