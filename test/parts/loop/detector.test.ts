import { describe, expect, test } from '@jest/globals';
import { type Detector, ToolRegistry } from 'toolwright';
import { historyFaults } from '../../flow/strict-history.js';
import { answers, numberTool, runScript } from './run-script.js';

const tools = () => new ToolRegistry().register(numberTool('lookup'));
const request = '{"tool_request":{"name":"lookup","arguments":{"n":1}}}';
const prose = 'Let me see. {"name":"lookup","arguments":{"n":2}} {"name":"lookup","arguments":{"n":3}}';

describe('the detector of a run', () => {
  async function calls(detector: Detector | undefined, content: string) {
    const { run } = await runScript([{ content }, { content: 'Done.' }, { content: 'Done.' }], {
      tools: tools(),
      detector,
    });
    expect(historyFaults(run.messages)).toEqual([]);
    return { answers: answers(run), run };
  }

  test.each<[Detector | undefined, string, readonly string[]]>([
    [undefined, request, []],
    ['native', prose, []],
    ['tool_request', request, ['1']],
    ['tool_request', prose, []],
    ['tool_request', `Sure: ${request}`, []],
    ['scan', request, ['1']],
    ['scan', prose, ['2', '3']],
    ['scan', '{"name":"unknown","arguments":{}}', []],
    [
      (content) => (content === 'abc' ? { toolCalls: [{ name: 'lookup', arguments: { n: 3 } }] } : undefined),
      'abc',
      ['3'],
    ],
    [() => undefined, prose, []],
  ])('%s, on %s', async (detector, content, expected) => {
    const detected = await calls(detector, content);
    expect(detected.answers).toEqual(expected);
  });

  test('keeps the text before the calls as content, and continues the numbering of calls', async () => {
    const { run } = await runScript([{ content: prose }, { content: request }, { content: 'Done.' }], {
      tools: tools(),
      detector: 'scan',
    });
    expect(run.messages[1]).toMatchObject({
      content: 'Let me see. ',
      tool_calls: [{ id: 'call_1' }, { id: 'call_2' }],
    });
    expect(run.messages[4]).toMatchObject({ content: '', tool_calls: [{ id: 'call_3' }] });
    expect(run.status).toBe('completed');
  });

  test('reports an unknown tool to the model', async () => {
    const { answers: told } = await calls('tool_request', '{"tool_request":{"name":"nothing"}}');
    expect(told).toEqual(['tool not found: nothing']);
  });

  test('is not applied to the text of a reply with native calls', async () => {
    const { run } = await runScript(
      [
        { content: request, toolCalls: [{ id: 'c', name: 'lookup', arguments: { n: 9 } }] },
        { content: 'Done.' },
      ],
      { tools: tools(), detector: 'scan' },
    );
    expect(answers(run)).toEqual(['9']);
  });

  test('does not run calls of a reply that was cut off', async () => {
    const { run } = await runScript([{ content: request, finishReason: 'length' }, { content: 'Done.' }], {
      tools: tools(),
      detector: 'tool_request',
    });
    expect(run.toolCalls).toMatchObject([{ status: 'not_run' }]);
  });

  test('is rejected if its name is unknown', async () => {
    await expect(runScript([], { detector: 'magic' as Detector })).rejects.toMatchObject({ code: 521 });
  });

  test('fails the run if it throws, and the history stays valid', async () => {
    const detector: Detector = () => {
      throw new Error('odd text');
    };
    const { run } = await runScript([{ content: 'x' }], { tools: tools(), detector });
    expect(run).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('odd text') } });
    expect(historyFaults(run.messages)).toEqual([]);
  });
});
