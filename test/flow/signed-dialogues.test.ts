import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { runToolLoop } from 'toolwright';
import { json, LoopbackServer } from '../parts/providers/loopback-server.js';
import { type BuiltProgram, buildProgram } from '../processes/build-program.js';
import { NodeProcess } from '../processes/node-process.js';
import { look, SIGNED_DIALOGUES } from './signed-dialogues.js';

let program: BuiltProgram;

beforeAll(() => {
  program = buildProgram('test/flow/signed-dialogues-program.ts');
});
afterAll(() => program.remove());

test.each(Object.entries(SIGNED_DIALOGUES))(
  'resumeToolLoop in another process sends back %s',
  async (dialogue, { first, last, kept, ask }) => {
    const replies = [first, last];
    await using server = await LoopbackServer.start((response, request) =>
      json(replies.shift())(response, request),
    );
    const config = { ...ask(server.baseURL), tools: [look] };
    const { status, state } = await runToolLoop(config, [{ role: 'user', content: 'Look' }]);
    expect([status, server.requests.length]).toEqual(['suspended', 1]);
    await using other = new NodeProcess([program.file], { folder: '.' });
    other.write(JSON.stringify({ dialogue, baseURL: server.baseURL, state }));
    other.endInput();
    const { exitCode, stdout, stderr } = await other.ended();
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(JSON.parse(stdout)).toEqual({ status: 'completed', content: 'Done.', results: 'seen at 1' });
    const [, request] = server.requests;
    for (const text of kept) expect(JSON.stringify(request?.body)).toContain(text);
  },
);
