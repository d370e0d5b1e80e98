import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import {
  type AsyncCallback,
  type AsyncTool,
  asyncResult,
  defineTool,
  discoverTools,
  type Message,
  type RunState,
  resumeToolLoop,
  runToolLoop,
  silentResult,
  streamToolLoop,
  TaskQueue,
  Tool,
  ToolContext,
  type ToolResult,
  Toolset,
  toolResult,
  userResult,
} from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { toolNamed } from './contract-tools.js';

const hello: readonly Message[] = [{ role: 'user', content: 'Hello' }];

/** The gate that lets the work end, and the results that onAsyncResult received. */
class Mailroom {
  readonly gate = Promise.withResolvers<void>();
  readonly heard: [string, ToolResult][] = [];
  readonly onAsyncResult = (context: ToolContext | undefined, result: ToolResult): void => {
    this.heard.push([`${context?.callId} ${context?.chatId}`, result]);
  };
}

let room = new Mailroom();

@Toolset()
class MailTools {
  @Tool('Mail the statement of a year')
  mailStatement(year: number, context: ToolContext) {
    return context.background(async () => {
      await room.gate.promise;
      return userResult(`mailed ${year}`);
    }, 'Started, I will report back');
  }

  @Tool({ description: 'Print the statement of a year', background: true })
  async printStatement(year: number) {
    await room.gate.promise;
    return silentResult(`printed ${year}`);
  }
}

/** Returns at once, and calls the callback later. */
function buildTool(): AsyncTool {
  let callback: AsyncCallback = () => {};
  return {
    ...toolNamed('build', (_args, context: ToolContext) => {
      const call = callback;
      void room.gate.promise.then(() => call(context, toolResult('built')));
      return asyncResult('Task started, will report back');
    }),
    setCallback: (given) => {
      callback = given;
    },
  };
}

const script = () =>
  new ScriptedProvider([
    {
      toolCalls: [
        { id: '1', name: 'build' },
        { id: '2', name: 'mail_statement', arguments: { year: 2025 } },
        { id: '3', name: 'print_statement', arguments: { year: 2026 } },
      ],
    },
    { content: 'All are on their way.' },
  ]);

const toolsOf = () => [buildTool(), ...discoverTools({ toolsets: [MailTools] })];

describe('background work', () => {
  test('does not block the loop, and each completion is delivered once with the result of its tool', async () => {
    room = new Mailroom();
    const tasks = new TaskQueue();
    const { onAsyncResult } = room;
    const config = { provider: script(), model: 'm', tools: toolsOf(), tasks, onAsyncResult };
    const run = await runToolLoop(config, hello, { channel: 'telegram', chatId: '42' });
    expect(run).toMatchObject({ status: 'completed', content: 'All are on their way.' });
    expect(run.messages.slice(2, 5).map(({ content }) => content)).toEqual([
      'Task started, will report back',
      'Started, I will report back',
      'Started; the result will follow.',
    ]);
    expect(run.toolCalls.map(({ status }) => status)).toEqual(['started', 'started', 'started']);
    expect(run.toolCalls.map(({ taskId }) => taskId).sort()).toEqual(tasks.tasks.map(({ id }) => id).sort());
    expect(room.heard).toEqual([]);
    room.gate.resolve();
    await tasks.idle();
    expect([...room.heard].sort(([one], [other]) => one.localeCompare(other))).toEqual([
      ['1 42', toolResult('built')],
      ['2 42', userResult('mailed 2025')],
      ['3 42', silentResult('printed 2026')],
    ]);
  });

  test('without a listener, calls wait for their work and return its result', async () => {
    room = new Mailroom();
    room.gate.resolve();
    const run = await runToolLoop({ provider: script(), model: 'm', tools: toolsOf() }, hello);
    expect(run.messages.slice(2, 5).map(({ content }) => content)).toEqual([
      // This tool starts its own work; it received no callback.
      'Task started, will report back',
      'mailed 2025',
      'printed 2026',
    ]);
    expect(run.toolCalls.map(({ status, taskId }) => [status, taskId])).toEqual(
      Array.from({ length: 3 }, () => ['success', undefined]),
    );
  });

  test('a task of a completed run can be cancelled by the id in its record', async () => {
    room = new Mailroom();
    const tasks = new TaskQueue();
    const { onAsyncResult } = room;
    const config = { provider: script(), model: 'm', tools: toolsOf(), tasks, onAsyncResult };
    const { toolCalls } = await runToolLoop(config, hello);
    for (const { taskId } of toolCalls) expect(tasks.cancel(taskId ?? '', 'closing time')).toBe(true);
    await tasks.idle();
    room.gate.resolve();
    await turn();
    expect(room.heard.map(([, { error }]) => error)).toMatchObject(
      Array.from({ length: 3 }, () => ({ name: 'TaskCancelled', code: 519 })),
    );
  });

  test('aborting the signal of a run also ends its work after the run has completed', async () => {
    room = new Mailroom();
    const { onAsyncResult } = room;
    const controller = new AbortController();
    const config = { provider: script(), model: 'm', tools: toolsOf(), onAsyncResult };
    const run = await runToolLoop({ ...config, signal: controller.signal }, hello);
    expect(run.status).toBe('completed');
    controller.abort();
    await turn();
    expect(room.heard.map(([, { error }]) => error)).toMatchObject(
      Array.from({ length: 3 }, () => ({ name: 'RunAborted' })),
    );
  });

  test('progress after the end of the run reaches the queue, and not the stream', async () => {
    room = new Mailroom();
    const tasks = new TaskQueue();
    const copy = defineTool({
      name: 'copy',
      description: 'Copy a file',
      execute: (_args, context) =>
        context.background(async () => {
          context.progress('early');
          await room.gate.promise;
          context.progress('late');
        }),
    });
    const updates: unknown[] = [];
    tasks.subscribe((event) => event.type === 'task-progress' && updates.push(event.update));
    const { onAsyncResult } = room;
    const provider = new ScriptedProvider([{ toolCalls: [{ id: '1', name: 'copy' }] }, { content: 'ok' }]);
    const types: string[] = [];
    for await (const { type } of streamToolLoop(
      { provider, model: 'm', tools: [copy], tasks, onAsyncResult },
      hello,
    ))
      types.push(type);
    expect([types.at(-1), updates]).toEqual(['run-end', ['early']]);
    room.gate.resolve();
    await tasks.idle();
    expect([updates, room.heard.length]).toEqual([['early', 'late'], 1]);
  });

  test('a call started in a suspended run is started once, and its record keeps the task id', async () => {
    room = new Mailroom();
    const tasks = new TaskQueue();
    const { onAsyncResult } = room;
    const ask = defineTool({
      name: 'ask',
      description: 'Ask the user',
      execute: (_args, context) => context.ask({ message: 'Sure?' }),
    });
    const [mail] = discoverTools({ toolsets: [MailTools] });
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'mail_statement', arguments: { year: 2025 } }, { name: 'ask' }] },
      { content: 'done' },
    ]);
    const config = { provider, model: 'm', tools: [...(mail ? [mail] : []), ask], tasks, onAsyncResult };
    const first = await runToolLoop(config, hello);
    const state = JSON.parse(JSON.stringify(first.state)) as RunState;
    room.gate.resolve();
    await tasks.idle();
    const [pending] = first.pending ?? [];
    const run = await resumeToolLoop(config, state, [{ id: pending?.id ?? '', value: 'yes' }]);
    expect(run.status).toBe('completed');
    expect(run.toolCalls[0]).toMatchObject({ status: 'started', taskId: expect.stringMatching(/^task_/) });
    expect(room.heard.map(([, { forLLM }]) => forLLM)).toEqual(['mailed 2025']);
  });
});
