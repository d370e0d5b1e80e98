import { expect, test } from '@jest/globals';
import { defineTool, runToolLoop, ToolCallParser, ToolRegistry, withTextTools } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { CALL_FORMATS } from './text-call-formats.js';

/** Formats that other texts hold too: JSON, code and lists. Only the name of a known tool tells a call there. */
const PLAIN = ['bare JSON', 'fenced JSON', 'Python list', 'Functionary 3.2'];
const MARKED = Object.keys(CALL_FORMATS).filter((name) => !PLAIN.includes(name));

function tools(): ToolRegistry {
  const registry = new ToolRegistry();
  registry.register(
    defineTool({ name: 'ls', description: 'Lists', parameters: { type: 'object' }, execute: () => 'a.txt' }),
  );
  return registry;
}

/** A run of a model that says these texts, one a request; and what it was asked. */
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
  'runToolLoop with %s tells the model that a tool it called in text is unknown, in any marked format',
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
  'runToolLoop with %s lets a model correct an unknown name in text, and ends where it does not',
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

test.each(ways)('runToolLoop with %s takes a known and an unknown call of one text as calls', async (way) => {
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
  ['JSON in a fence', '```json\n{"name":"list_files","arguments":{}}\n```'],
  ['a list', '[list_files(path=1)]'],
  ['an example in a fence', 'Write:\n```\n<tool_call>{"name":"list_files","arguments":{}}</tool_call>\n```'],
  ['an example that text follows', '<tool_call>{"name":"list_files","arguments":{}}</tool_call> is a call.'],
  ['a tag without arguments', 'Use <tool_call>list_files</tool_call>'],
  ['marks alone', 'Models write <tool_call> or [TOOL_CALLS].'],
])('runToolLoop takes %s with an unknown name as the answer that it is', async (_, text) => {
  for (const way of ways)
    expect(await run(way, [text])).toMatchObject({ status: 'completed', content: text });
});

test('ToolCallParser finds nothing but the tools that it was given, also between marks', () => {
  for (const write of Object.values(CALL_FORMATS)) {
    const text = write('list_files', { path: '.' });
    expect(new ToolCallParser({ tools: ['ls'] }).parse(text)).toEqual({ toolCalls: [], textBefore: text });
  }
});
