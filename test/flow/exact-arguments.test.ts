import 'reflect-metadata';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  defineTool,
  describeClass,
  discoverTools,
  type JsonSchema,
  Param,
  runToolLoop,
  Tool,
  ToolRegistry,
  Toolset,
} from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';

const DIGITS = '12345678901234567890';

/** The arguments that a tool with one property receives, or the error message. */
async function given(text: string, id: JsonSchema, options = {}): Promise<unknown> {
  let args: unknown;
  const tools = new ToolRegistry().register(
    defineTool({
      name: 'find',
      description: 'Finds one',
      parameters: { type: 'object', properties: { id } },
      execute: (sent) => {
        args = sent;
      },
      ...options,
    }),
  );
  const { content } = await tools.call({ name: 'find', arguments: text });
  return content === 'ok' ? args : content;
}

@Toolset()
class Orders {
  @Tool('Finds an order') find(@Param('Its number') id: bigint) {
    return `${id + 1n}`;
  }
}
const BIGINT = { type: 'string', pattern: '^-?[0-9]+$', instanceOf: BigInt };
describeClass(Orders, { tools: { find: { parameters: [{ name: 'id', schema: BIGINT }] } } });

async function findById(text: string): Promise<string> {
  const tools = new ToolRegistry().register(...discoverTools({ toolsets: [Orders] }));
  return (await tools.call({ name: 'find', arguments: text })).content;
}

describe('an integer beyond the safe range', () => {
  test.each<JsonSchema>([
    { type: 'integer' },
    { type: 'number' },
    { type: ['integer', 'null'] },
    { anyOf: [{ type: 'integer' }, { type: 'null' }] },
  ])('is an error with the reason if the schema is %j', async (schema) => {
    const told = await given(`{"id":${DIGITS}}`, schema);
    expect(told).toMatch(
      /- id: must be \w+( or \w+)?, and digits of 12345678901234567890 would be lost; the largest value is 9007199254740991\n/,
    );
    expect(await given(`{"id":-${DIGITS}}`, schema)).toContain(
      'digits of -12345678901234567890 would be lost',
    );
  });

  test.each<JsonSchema>([
    { type: 'string' },
    { type: ['integer', 'string'] },
    { anyOf: [{ type: 'integer' }, { type: 'string', pattern: '^[0-9]+$' }] },
    {},
  ])('is passed as text if the schema is %j', async (schema) => {
    expect(await given(`{"id":${DIGITS}}`, schema)).toEqual({ id: DIGITS });
    expect(await given(`{id: ${DIGITS}}`, schema)).toEqual({ id: DIGITS });
    expect(await given(JSON.stringify(`{"id":${DIGITS}}`), schema)).toEqual({ id: DIGITS });
    expect(await given(`{"id":${'9'.repeat(400)}}`, schema)).toEqual({ id: '9'.repeat(400) });
  });

  test.each([
    [`{"id": ${DIGITS}}`, '12345678901234567891'],
    [`{"id": -${DIGITS}}`, '-12345678901234567889'],
    [`{"id": "${DIGITS}"}`, '12345678901234567891'],
    ['{"id": 5}', '6'],
    ['{"id": -9007199254740991}', '-9007199254740990'],
  ])('becomes an exact bigint: %s', async (text, answer) => {
    expect(await findById(text)).toBe(answer);
  });

  test.each(['{"id": 5.5}', '{"id": 1e300}', '{"id": true}', '{"id": 46482722751524570}'])(
    'is not converted to bigint if the number may be inexact: %s',
    async (text) => {
      expect(await findById(text)).toContain('- id: must be string');
    },
  );

  test('is exact in a tool call in text, too', async () => {
    let args: unknown;
    const tools = new ToolRegistry().register(
      defineTool({
        name: 'find',
        description: 'Finds one',
        parameters: { type: 'object', properties: { id: { type: 'string' } } },
        execute: (sent) => {
          args = sent;
        },
      }),
    );
    const provider = new ScriptedProvider([
      { content: `<tool_call>{"name":"find","arguments":{"id":${DIGITS}}}</tool_call>` },
      { content: 'done' },
    ]);
    await runToolLoop({ provider, model: 'm', tools, detector: 'scan' }, [
      { role: 'user', content: 'find it' },
    ]);
    expect(args).toEqual({ id: DIGITS });
  });

  test('is refused by a tool with repair: false, with the reason', async () => {
    const told = await given(`{"id":${DIGITS}}`, { type: 'string' }, { repair: false });
    expect(told).toContain('an integer has more digits than a number can hold; send it as a string');
  });

  test('stays a number if it is exact, also in other values', async () => {
    const sent = `{"id": 9007199254740991, "list": [10000000000000000000000, 9007199254740994, "${DIGITS}"]}`;
    const any = { type: 'object', properties: { id: {} }, additionalProperties: true };
    expect(await given(sent, any, { parameters: any })).toEqual(JSON.parse(sent));
  });

  test('never becomes another integer', async () => {
    const digits = fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n });
    await fc.assert(
      fc.asyncProperty(
        digits,
        fc.constantFrom('{"id":%}', '{id:%}', '```json\n{"id": % }\n```'),
        async (id, text) => {
          const args = (await given(text.replace('%', String(id)), {})) as { id: string | number };
          expect([String(args.id), String(BigInt(args.id))]).toContain(String(id));
        },
      ),
    );
  });
});

describe('arguments with more than one object', () => {
  test.each(['{}{"id":5}', '{"id":5}{"id":5}'])('%s are refused', async (text) => {
    expect(await given(text, { type: 'integer' })).toContain(
      'the arguments must be one JSON object, but the text contains several',
    );
  });
});

describe('a key __proto__', () => {
  test.each(['{"id":1,"__proto__":{"x":1}}', "{'id':1,'__proto__':2}", '{"id":"1","__proto__":3}'])(
    'is removed as an unknown key: %s',
    async (text) => {
      const tools = new ToolRegistry().register(
        defineTool({
          name: 'find',
          description: 'Finds one',
          parameters: { type: 'object', properties: { id: { type: 'integer' } } },
          execute: (args) => JSON.stringify(args),
        }),
      );
      const { content } = await tools.call({ name: 'find', arguments: text });
      expect(content).toBe('{"id":1}\n\nIgnored: __proto__ is not an argument of find.');
    },
  );
});
