import { expect, test } from '@jest/globals';
import { defineTool, runToolLoop, ToolCallParser, ToolRegistry, withTextTools } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { CALL_FORMATS } from './text-call-formats.js';

/** Formats of ordinary text: JSON, code and lists. Only the name of a known tool makes it a call. */
const PLAIN = ['bare JSON', 'fenced JSON', 'Python list', 'Functionary 3.2'];
const MARKED = Object.keys(CALL_FORMATS).filter((name) => !PLAIN.includes(name));

function tools(): ToolRegistry {
  const registry = new ToolRegistry();
  registry.register(
    defineTool({ name: 'ls', description: 'Lists', parameters: { type: 'object' }, execute: () => 'a.txt' }),
  );
  return registry;
}

/** A run of a model that replies with these texts, with its requests. */
async function run(way: 'text tools' | 'scan', texts: readonly string[]) {
  const scripted = new ScriptedProvider(texts.map((content) => ({ content })));
  const outcome = await runToolLoop(
    way === 'scan'
      ? { provider: scripted, model: 'm', tools: tools(), detector: 'scan' }
      : { provider: withTextTools(scripted), model: 'm', tools: tools() },
    [{ role: 'user', content: 'List the files' }],
  );
  return { ...outcome, requests: scripted.requests };
}

const ways = ['text tools', 'scan'] as const;

test.each(ways)(
  'runToolLoop with %s reports an unknown tool to the model, in any marked format',
  async (way) => {
    for (const name of MARKED) {
      const call = CALL_FORMATS[name]!('list_files', { path: '.' });
      const { content, requests, toolCalls } = await run(way, [
        `Let me see. ${call}\n</answer>`,
        'I cannot.',
      ]);
      expect([name, content]).toEqual([name, 'I cannot.']);
      expect(toolCalls.map((record) => [record.name, record.status])).toEqual([['list_files', 'rejected']]);
      expect(JSON.stringify(requests[1]?.messages.at(-1))).toContain('tool not found: list_files');
    }
  },
);

test.each(ways)(
  'runToolLoop with %s lets the model correct an unknown name, and fails after too many',
  async (way) => {
    const unknown = CALL_FORMATS.Hermes!('list_files', {});
    const known = CALL_FORMATS.Hermes!('ls', {});
    expect(await run(way, [unknown, known, 'There is a.txt.'])).toMatchObject({ content: 'There is a.txt.' });
    expect(await run(way, [unknown, unknown, unknown])).toMatchObject({
      status: 'failed',
      error: { name: 'ToolRetriesExhausted' },
    });
  },
);

test.each(ways)('runToolLoop with %s accepts a known and an unknown call in one text', async (way) => {
  const { toolCalls } = await run(way, [
    `[TOOL_CALLS] [{"name":"ls","arguments":{}},{"name":"list_files","arguments":{}}]`,
    'Done.',
  ]);
  expect(toolCalls.map((record) => [record.name, record.status])).toEqual([
    ['ls', 'success'],
    ['list_files', 'rejected'],
  ]);
});

test.each([
  ['bare JSON', '{"name":"list_files","arguments":{}}'],
  ['fenced JSON', '```json\n{"name":"list_files","arguments":{}}\n```'],
  ['a Python list', '[list_files(path=1)]'],
  ['a fenced example', 'Write:\n```\n<tool_call>{"name":"list_files","arguments":{}}</tool_call>\n```'],
  ['an example followed by text', '<tool_call>{"name":"list_files","arguments":{}}</tool_call> is a call.'],
  ['a tag without arguments', 'Use <tool_call>list_files</tool_call>'],
  ['marks without a call', 'Models write <tool_call> or [TOOL_CALLS].'],
])('runToolLoop returns %s with an unknown name as the answer', async (_, text) => {
  for (const way of ways)
    expect(await run(way, [text])).toMatchObject({ status: 'completed', content: text });
});

test('ToolCallParser finds only the given tools, even between marks', () => {
  for (const write of Object.values(CALL_FORMATS)) {
    const text = write('list_files', { path: '.' });
    expect(new ToolCallParser({ tools: ['ls'] }).parse(text)).toEqual({ toolCalls: [], textBefore: text });
  }
});
