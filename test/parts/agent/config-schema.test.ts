import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { InvalidOptionsError } from 'toolwright';
import { createAgent } from 'toolwright/agent';
import { type OptionRule, objectOf } from '../../../src/core/kernel/options.js';
import { AGENT_OPTIONS } from '../../../src/toolbox/agent/agent-options.js';
import { PERMISSIONS_OPTIONS } from '../../../src/toolbox/permissions/permissions.js';

type Schema = Readonly<Record<string, unknown>>;

const FILE = 'agent.schema.json';

/** Options that cannot be set in a file. */
const NOT_OF_FILES = ['configFile', 'folderConfigFile'];

function schemaOf(
  rules: ReadonlyMap<string, OptionRule>,
): Schema & { readonly properties: Readonly<Record<string, Schema>> } {
  return objectOf(Object.fromEntries(rules) as never, { fix: '' }).schema as never;
}

/** A variable is allowed wherever a string is. */
function withVariables(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withVariables);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { type, enum: texts } = schema as Schema;
  if (type === 'string' || Array.isArray(texts)) return { anyOf: [schema, { $ref: '#/$defs/variable' }] };
  return Object.fromEntries(Object.entries(schema).map(([name, inner]) => [name, withVariables(inner)]));
}

/** The schema generated from the tables that validate the file. */
function generated(): Schema {
  const { properties, required, ...others } = schemaOf(AGENT_OPTIONS.rules);
  const ofFiles = Object.entries(properties).filter(([name]) => !NOT_OF_FILES.includes(name));
  const all = { ...Object.fromEntries(ofFiles), permissions: schemaOf(PERMISSIONS_OPTIONS.rules) };
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Configuration file of createAgent and toolwright agent',
    ...others,
    properties: { $schema: { type: 'string' }, ...(withVariables(all) as Schema) },
    // No "required": options that the file omits may be set in code.
    $defs: {
      variable: {
        description: 'The text of a variable of the environment',
        type: 'object',
        properties: { env: { type: 'string', minLength: 1 } },
        required: ['env'],
        additionalProperties: false,
      },
    },
  };
}

/** JSON values, each valid for some options and invalid for others. */
const VALUES: readonly unknown[] = [
  ...[null, true, false, 0, 1, 3, -1, 0.5, 1e6, '', ' ', 'x', 'gpt-5'],
  ...[
    'step',
    'call',
    'suspend',
    'auto',
    'none',
    'required',
    'end',
    'ask',
    'return',
    'throw',
    'answer',
    'refuse',
  ],
  ...['repair', 'native', 'scan', 'tool_request', 'read-only'],
  ...[[], [1], ['a'], [''], [[]], [{}], {}, { a: 1 }, { a: { b: 1 } }],
  ...[{ cost: 1 }, { cost: -1 }, { tokens: 5 }, { tokens: 0.5 }, { timeMs: 0.5 }, { costs: 1 }],
  ...[
    { whenSpent: 'ask' },
    { whenSpent: { ask: {} } },
    { whenSpent: { ask: { cost: 1 } } },
    { whenSpent: 'x' },
  ],
  ...[
    { conversation: { cost: 2 } },
    { conversation: 2 },
    { children: { steps: 3 } },
    { by: [] },
    { by: [{ key: 'k' }] },
  ],
  ...[{ prices: { m: { input: 1, output: 2 } } }, { prices: { m: { input: 1 } } }, { maxOutputTokens: 3 }],
  ...[{ tellAt: 3, endAt: 6 }, { tellAt: 'x' }, { tool: 'x' }, { tools: ['x'] }, { tool: 'x', tools: ['y'] }],
  ...[
    { mode: 'required' },
    { tool: 'x', mode: 'auto' },
    { takesTurns: false },
    { maxConcurrency: 2 },
    { pollMs: 'x' },
  ],
];

/** Options whose values are looked up and checked only when the agent is created. */
const LOOKED_UP = ['provider', 'toolboxes', 'mcp', 'permissions', 'store', 'telemetry'];

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'toolwright-schema-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('agent.schema.json', () => {
  test('equals the schema generated from the tables that validate the file', async () => {
    const text = `${JSON.stringify(generated(), null, 2)}\n`;
    if (process.env.UPDATE_CONFIG_SCHEMA === '1') await writeFile(FILE, text);
    expect(JSON.parse(await readFile(FILE, 'utf8'))).toEqual(JSON.parse(text));
  });

  const options = [...AGENT_OPTIONS.rules].filter(([name]) => !LOOKED_UP.includes(name));
  test.each(options)('accepts the same values for %s as its validation', (_, rule) => {
    const isRight = rule.schema === undefined ? () => false : new Ajv2020().compile(rule.schema);
    expect(VALUES.filter((value) => isRight(value))).toEqual(VALUES.filter((value) => rule.accepts(value)));
  });

  const base = { provider: 'offline', model: 'm' };
  test.each([
    { ...base, $schema: './agent.schema.json' },
    { ...base, provider: { offline: {} }, toolboxes: ['tasks', ['web'], { files: {} }], store: 'memory' },
    { ...base, permissions: { mode: 'auto', rules: [{ decision: 'deny', path: '**/.env*', reason: 'no' }] } },
    {
      ...base,
      model: { env: 'PATH' },
      maxIterations: 3,
      budget: { steps: 3, conversation: { calls: 9 } },
      store: { memory: {} },
    },
    { ...base, toolboxes: 'files' },
    { ...base, toolboxes: ['fils'] },
    { ...base, toolboxes: [{ files: {}, web: {} }] },
    { ...base, toolboxes: [7] },
    { ...base, provider: 'opnai' },
    { ...base, provider: { offline: 3 } },
    { ...base, store: 'redis' },
    { ...base, telemetry: 'other' },
    { ...base, mcp: ['x'] },
    { ...base, mcp: { shop: {} } },
    { ...base, permissions: { mode: 'askk' } },
    { ...base, permissions: { rules: [{ decision: 'allow', pth: 'x' }] } },
    { ...base, permissions: { rules: [{ path: 'x' }] } },
    { ...base, permissions: [] },
    { ...base, maxIterations: -1 },
    { ...base, modle: 'x' },
    { ...base, configFile: 'other.json' },
    { ...base, hooks: ['mask'] },
    { ...base, model: { env: 3 } },
  ])('accepts the same files as createAgent: %j', async (content) => {
    const configFile = join(folder, 'agent.json');
    await writeFile(configFile, JSON.stringify(content));
    const isRight = new Ajv2020().compile(JSON.parse(await readFile(FILE, 'utf8')) as object);
    const made = createAgent({ configFile, folder }).then(
      (agent) => agent.close().then(() => true),
      (error: unknown) => {
        if (error instanceof InvalidOptionsError || (error as { code?: number }).code === 502) return false;
        throw error;
      },
    );
    expect([isRight(content), isRight.errors]).toEqual([await made, (await made) ? null : expect.anything()]);
  });

  test('is exported and shipped with the package, so that editors find it', async () => {
    const { exports, files } = JSON.parse(await readFile('package.json', 'utf8')) as {
      readonly exports: Readonly<Record<string, string>>;
      readonly files: readonly string[];
    };
    expect([exports[`./${FILE}`], files.includes(FILE)]).toEqual([`./${FILE}`, true]);
  });
});
