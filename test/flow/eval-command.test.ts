import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { completion, json, LoopbackServer } from '../parts/providers/loopback-server.js';
import { builtFile } from '../processes/built-file.js';
import { NodeProcess } from '../processes/node-process.js';

const COMMAND = builtFile('dist/src/dev/cli/main.js');
const ENTRY_POINT = JSON.stringify(builtFile('dist/src/index.js'));

const TOOLS = `
import { defineTool, ToolRegistry } from ${ENTRY_POINT};
export const tools = new ToolRegistry().register(
  defineTool({ name: 'find', description: 'Finds', parameters: { type: 'object', properties: { id: { type: 'string' } } }, execute: () => { throw new Error('it ran'); } }));
`;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-eval-'));
  writeFileSync(join(folder, 'tools.mjs'), TOOLS);
  const cases = ['"a"', '{"$regex":"^b"}'].map(
    (id) =>
      `{"id":${JSON.stringify(id)},"prompt":"Find","expect":{"tool":"find","arguments":{"id":${id}}}}\n`,
  );
  writeFileSync(join(folder, 'cases.jsonl'), cases.join(''));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('toolwright eval calls the server from the environment, and exits with 1 below --min', async () => {
  const call = { id: 'c1', type: 'function', function: { name: 'find', arguments: '{"id":"a"}' } };
  await using server = await LoopbackServer.start(
    json(completion({ content: null, tool_calls: [call] }, { finish_reason: 'tool_calls' })),
  );
  const environment = { OPENAI_BASE_URL: server.baseURL, OPENAI_MODEL: 'm', OPENAI_API_KEY: 'sk-test' };
  await using command = new NodeProcess([COMMAND, 'eval', 'tools.mjs', 'cases.jsonl', '--min', '0.9'], {
    folder,
    environment,
  });
  const { exitCode, stdout, stderr } = await command.ended();
  expect(stdout).toContain('find           1       1\n');
  expect(stdout).toContain('    find.id: expected {"$regex":"^b"}, got "a"\n');
  expect({ exitCode, stderr }).toEqual({
    exitCode: 1,
    stderr: 'toolwright: 50 % passed, less than --min 0.9\n',
  });
  expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
    'Bearer sk-test',
    'Bearer sk-test',
  ]);
});
