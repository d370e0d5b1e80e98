import { PassThrough } from 'node:stream';
import { expect, test } from '@jest/globals';
import { Conversations, type EventsOptions, ToolRegistry } from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { TerminalTalk } from '../../../src/dev/cli/terminal.js';

test('Ctrl-C after the end of the turn ends the command, even before the prompt is shown', async () => {
  const ended = Promise.withResolvers<void>();
  const settled = Promise.withResolvers<void>();
  let aborts = 0;
  const view = { status: 'idle', messages: [], pending: [], lastEvent: 1 };
  const conversations = {
    snapshot: async () => undefined,
    idle: async () => settled.promise.then(() => view),
    abort: async () => {
      aborts += 1;
      return false;
    },
    async *events(_id: string, { signal }: { readonly signal: AbortSignal }) {
      await ended.promise;
      yield { number: 1, event: { type: 'turn-end', status: 'completed' } };
      setImmediate(() => {
        process.emit('SIGINT');
        settled.resolve();
      });
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    },
  };
  const input = new PassThrough();
  const talk = new TerminalTalk({
    id: 'c',
    conversations: conversations as unknown as Conversations,
    environment: { folder: '.', input, isTerminal: false, out: () => {}, error: () => {} },
    greeting: '',
    registry: new ToolRegistry(),
    isAnswered: false,
    prompt: async () => ended.resolve(),
  }).talk();
  input.write('Hello\n');
  // The input stays open, so only Ctrl-C ends the command.
  expect(await talk).toBe(0);
  expect(aborts).toBe(0);
});

test('Ctrl-C aborts a turn that began right after the turn of the prompt', async () => {
  const begun = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<void>();
  const conversations = {
    snapshot: async () => undefined,
    idle: async () => {
      await aborted.promise;
      return { status: 'idle', messages: [], pending: [], lastEvent: 4 };
    },
    abort: async () => {
      aborted.resolve();
      return true;
    },
    async *events() {
      await begun.promise;
      yield { number: 1, event: { type: 'turn-start' } };
      yield { number: 2, event: { type: 'turn-end', status: 'completed' } };
      yield { number: 3, event: { type: 'turn-start' } };
      setImmediate(() => process.emit('SIGINT'));
      await aborted.promise;
      yield { number: 4, event: { type: 'turn-end', status: 'aborted' } };
    },
  };
  const input = new PassThrough();
  const talk = new TerminalTalk({
    id: 'c',
    conversations: conversations as unknown as Conversations,
    environment: { folder: '.', input, isTerminal: false, out: () => {}, error: () => {} },
    greeting: '',
    registry: new ToolRegistry(),
    isAnswered: false,
    prompt: async () => begun.resolve(),
  }).talk();
  input.end('Hello\n');
  expect(await talk).toBe(1);
});

test('Ctrl-C ends the command if the turn has ended, but its end is not shown yet', async () => {
  const provider = new ScriptedProvider([{ content: 'Hello!' }]);
  const turns = new Conversations({ store: new MemoryRunStore(), config: { provider, model: 'm' } });
  const aborts: Promise<boolean>[] = [];
  const conversations = {
    snapshot: (id: string) => turns.snapshot(id),
    idle: (id: string) => turns.idle(id),
    abort: (id: string) => {
      const abort = turns.abort(id);
      aborts.push(abort);
      return abort;
    },
    async *events(id: string, options: EventsOptions) {
      for await (const numbered of turns.events(id, options)) {
        if (numbered.event.type === 'turn-end') {
          await turns.idle(id);
          process.emit('SIGINT');
        }
        yield numbered;
      }
    },
  };
  const input = new PassThrough();
  const talk = new TerminalTalk({
    id: 'c',
    conversations: conversations as unknown as Conversations,
    environment: { folder: '.', input, isTerminal: false, out: () => {}, error: () => {} },
    greeting: '',
    registry: new ToolRegistry(),
    isAnswered: false,
    prompt: (text) => turns.prompt('c', text),
  }).talk();
  input.write('Hello\n');
  // The input stays open, so only Ctrl-C ends the command.
  expect(await talk).toBe(0);
  expect(await Promise.all(aborts)).toEqual([false]);
  await turns.close();
});
