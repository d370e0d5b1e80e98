import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { defineTool, ToolRegistry } from 'toolwright';

const TEXT = { type: 'string' };
const POINT = { type: 'object', properties: { x: { type: 'number' }, tags: { type: 'array', items: TEXT } } };

/** Properties that contain objects, with every kind of schema and without one. */
const PARAMETERS = {
  type: 'object',
  properties: {
    text: TEXT,
    point: POINT,
    points: { type: 'array', items: POINT },
    grid: { type: 'array', items: { type: 'array', items: { type: 'integer' } } },
    record: { type: 'object', additionalProperties: POINT },
    texts: { type: 'object', properties: { point: POINT }, additionalProperties: TEXT },
    open: { ...POINT, additionalProperties: true },
    patterned: { ...POINT, additionalProperties: false, patternProperties: { '^p': {} } },
    inherited: { type: 'object', properties: { toString: POINT, constructor: TEXT } },
    pair: { type: 'array', prefixItems: [POINT, TEXT] },
    nullable: { ...POINT, type: ['object', 'null'] },
    openApi: { ...POINT, nullable: true },
    openApiList: { type: 'array', items: TEXT, nullable: true },
    union: { anyOf: [POINT, TEXT] },
    referred: { $ref: '#/$defs/point' },
    filled: { type: 'integer', default: 3 },
    anything: {},
  },
  $defs: { point: POINT },
};

const point = fc.record({ x: fc.integer(), tags: fc.array(fc.string()) }, { requiredKeys: [] });
const anything = fc.jsonValue({ maxDepth: 3 });

const sentArguments = fc.record(
  {
    text: fc.string(),
    point,
    points: fc.array(point),
    grid: fc.array(fc.array(fc.integer())),
    record: fc.dictionary(fc.string(), point),
    texts: fc.dictionary(fc.string({ minLength: 6 }), fc.string()),
    open: fc.record({ x: fc.integer(), more: anything }),
    patterned: fc.record({ x: fc.integer(), p1: anything }),
    inherited: fc.record({ toString: point }),
    pair: fc.tuple(point, fc.string()),
    nullable: fc.option(point),
    openApi: fc.option(point),
    openApiList: fc.option(fc.array(fc.string())),
    union: fc.oneof(point, fc.string()),
    referred: point,
    filled: fc.integer(),
    anything,
    unknown: anything,
  },
  { requiredKeys: [] },
);

/** Modifies everything in a value that can be modified. */
function spoil(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  const holder = value as Record<string, unknown>;
  for (const key of Object.keys(holder)) {
    spoil(holder[key]);
    delete holder[key];
  }
  Object.defineProperty(holder, 'spoilt', { value: true, enumerable: true });
}

test('CallRecord.rawArguments and ToolContext.rawArguments are unchanged if a tool mutates its arguments', async () => {
  const seen: unknown[] = [];
  const spoiling = defineTool({
    name: 'spoil',
    description: 'Spoils its arguments',
    parameters: PARAMETERS,
    execute: (args, context) => {
      spoil(args);
      seen.push(context.rawArguments);
    },
  });
  const tools = new ToolRegistry().register(spoiling);
  await fc.assert(
    fc.asyncProperty(sentArguments, async (sent) => {
      const before = structuredClone(sent);
      const { record } = await tools.invoke({ id: 'c1', name: 'spoil', arguments: sent });
      expect(record.status).toBe('success');
      expect(record.rawArguments).toEqual(before);
      expect(seen.at(-1)).toEqual(before);
    }),
    // After some calls, generated code copies the arguments.
    { numRuns: 400 },
  );
});
