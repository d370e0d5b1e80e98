import { getEventListeners } from 'node:events';
import { describe, expect, test } from '@jest/globals';
import { defineTool, runToolLoop, ToolRegistry } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';

const CALLS = 1_000;

/** A tool whose calls wait for `gate`, and which can listen to its signal. */
function waitingTool({ takesSignal }: { readonly takesSignal: boolean }) {
  const gate = Promise.withResolvers<string>();
  const reasons: unknown[] = [];
  const tools = new ToolRegistry().register(
    defineTool({
      name: 'wait',
      description: 'Waits',
      parameters: { type: 'object', properties: {} },
      execute: (_args: object, context) => {
        if (takesSignal) context.signal.addEventListener('abort', () => reasons.push(context.signal.reason));
        return gate.promise;
      },
    }),
  );
  return { tools, gate, reasons };
}

/** The names of process warnings during `work`. */
async function warningsOf(work: () => Promise<void>): Promise<readonly string[]> {
  const warnings: string[] = [];
  const hear = (warning: Error): number => warnings.push(warning.name);
  process.on('warning', hear);
  await work();
  await new Promise(setImmediate);
  process.off('warning', hear);
  return warnings;
}

describe('ToolRegistry.invoke with one signal for a thousand calls', () => {
  test.each([false, true])('adds one listener to it (tools that listen: %s)', async (takesSignal) => {
    const { tools, gate } = waitingTool({ takesSignal });
    const { signal } = new AbortController();
    const warnings = await warningsOf(async () => {
      const calls = Array.from({ length: CALLS }, (_, index) =>
        tools.invoke({ id: `call_${index}`, name: 'wait', arguments: {} }, { signal }),
      );
      await new Promise(setImmediate);
      expect(getEventListeners(signal, 'abort').length).toBe(1);
      gate.resolve('done');
      await Promise.all(calls);
    });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    expect(warnings).toEqual([]);
  });

  test('notifies each call when it is aborted', async () => {
    const { tools, reasons } = waitingTool({ takesSignal: true });
    const controller = new AbortController();
    const calls = Array.from({ length: CALLS }, (_, index) =>
      tools.invoke({ id: `call_${index}`, name: 'wait', arguments: {} }, { signal: controller.signal }),
    );
    await new Promise(setImmediate);
    controller.abort('enough');
    const statuses = new Set((await Promise.all(calls)).map(({ record }) => record.status));
    expect([...statuses]).toEqual(['aborted']);
    expect(reasons).toEqual(Array(CALLS).fill('enough'));
  });
});

test('runToolLoop with one signal for a hundred runs adds one listener to it', async () => {
  const { tools, gate } = waitingTool({ takesSignal: true });
  const { signal } = new AbortController();
  const warnings = await warningsOf(async () => {
    const runs = Array.from({ length: 100 }, () => {
      const provider = new ScriptedProvider([
        { content: '', toolCalls: [{ name: 'wait' }] },
        async () => ({ content: 'done' }),
      ]);
      return runToolLoop({ provider, model: 'm', tools, signal }, [{ role: 'user', content: 'go' }]);
    });
    await new Promise(setImmediate);
    expect(getEventListeners(signal, 'abort').length).toBe(1);
    gate.resolve('done');
    for (const { status } of await Promise.all(runs)) expect(status).toBe('completed');
  });
  expect(getEventListeners(signal, 'abort')).toEqual([]);
  expect(warnings).toEqual([]);
});
