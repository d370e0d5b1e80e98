import { expect, test } from '@jest/globals';
import { ToolRegistry } from 'toolwright';
import { plainTool } from './plain-tool.js';

/** A tool whose validation never ends, like a class-validator rule that calls a dead server. */
const stuck = () => ({
  ...plainTool(() => 'ran'),
  name: 'stuck',
  timeoutMs: 20,
  hydrate: () => new Promise<never>(() => {}),
});

test('a validation that never ends times out', async () => {
  const { forLLM, error } = await new ToolRegistry().register(stuck()).execute('stuck', {});
  expect(forLLM).toBe("The tool 'stuck' timed out after 20 ms.");
  expect(error).toMatchObject({ name: 'ToolTimedOut' });
});

test('an abort ends a validation that never ends', async () => {
  const tools = new ToolRegistry().register({ ...stuck(), timeoutMs: 60_000 });
  const abort = new AbortController();
  const answer = tools.executeWithContext('stuck', {}, { signal: abort.signal });
  abort.abort();
  expect((await answer).error).toMatchObject({ name: 'RunAborted' });
});

test('a validation that throws later is an error of the tool', async () => {
  const tool = { ...stuck(), hydrate: () => Promise.reject(new Error('rule broke')) };
  expect((await new ToolRegistry().register(tool).execute('stuck', {})).forLLM).toBe(
    "The tool 'stuck' cannot be called: rule broke",
  );
});
