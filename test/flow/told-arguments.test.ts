import { describe, expect, test } from '@jest/globals';
import { defineTool, type JsonSchema, runToolLoop, ToolRegistry } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import * as z from 'zod';

function toolsOf(parameters: JsonSchema, annotations = {}): ToolRegistry {
  return new ToolRegistry().register(
    defineTool({ name: 'list', description: 'Lists', parameters, annotations, execute: () => 'all of it' }),
  );
}

async function answer(parameters: JsonSchema, args: object, annotations = {}): Promise<readonly string[]> {
  const { content } = await toolsOf(parameters, annotations).call({ name: 'list', arguments: args });
  return content.split('\n');
}

const listing: JsonSchema = {
  type: 'object',
  properties: {
    limit: { type: 'integer' },
    where: { type: 'object', properties: { city: { type: 'string' } } },
  },
};

describe('ToolRegistry.call with unknown keys', () => {
  test('names the ignored keys in a last line', async () => {
    expect(await answer(listing, { status: 'paid' })).toEqual([
      'all of it',
      '',
      'Ignored: status is not an argument of list.',
    ]);
    expect(await answer(listing, { status: 'paid', where: { zip: '1' } })).toContain(
      'Ignored: status, where.zip are not arguments of list.',
    );
  });

  test('names ten ignored keys and counts the others', async () => {
    const sent = Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`key\n${index}`, 1]));
    const [, , last = ''] = await answer(listing, sent);
    expect(last).toMatch(/^Ignored: key 0, .*, key 9 and 2 more are not arguments of list\.$/);
  });

  test('truncates names of more than 64 characters', async () => {
    const [whole, long] = ['x'.repeat(64), 'x'.repeat(65)];
    expect((await answer(listing, { [whole]: 1 })).at(-1)).toBe(
      `Ignored: ${whole} is not an argument of list.`,
    );
    expect((await answer(listing, { [long]: 1 })).at(-1)).toBe(
      `Ignored: ${whole}… is not an argument of list.`,
    );
  });

  test('suggests the plural and the other case of a name', async () => {
    const tags = { type: 'array', items: { type: 'string' } };
    const content = await answer({ type: 'object', properties: { tags } }, { tag: ['new'] });
    expect(content).toContain('There is no property "tag"; did you mean "tags"?');
    const id = { type: 'string' };
    expect(await answer({ type: 'object', properties: { id } }, { ID: 'a' })).toContain(
      'There is no property "ID"; did you mean "id"?',
    );
  });

  test('refuses a likely typo of an optional key, but ignores it if that key was also sent', async () => {
    expect(await answer(listing, { limt: 5 })).toEqual([
      "Validation failed for tool 'list':",
      '  - limt: is not a known property',
      'There is no property "limt"; did you mean "limit"?',
      'Received: {"limt":5}',
    ]);
    expect(await answer(listing, { limit: 3, limt: 5 })).toContain(
      'Ignored: limt is not an argument of list.',
    );
    expect(await answer(listing, { where: { City: 'x' } })).toContain(
      '  - where.City: is not a known property',
    );
  });

  test('refuses unknown keys for a destructive tool, and accepts them if the schema allows any', async () => {
    expect(await answer(listing, { status: 'paid' }, { destructive: true })).toContain(
      '  - status: is not a known property, and this tool accepts no others',
    );
    expect(await answer({ ...listing, additionalProperties: true }, { limt: 5 })).toEqual(['all of it']);
  });
});

test('ToolRegistry.execute does not change the result; the message and the record name ignored keys', async () => {
  const tools = toolsOf(listing);
  expect((await tools.execute('list', { status: 'paid' })).forLLM).toBe('all of it');
  const provider = new ScriptedProvider([
    { toolCalls: [{ name: 'list', arguments: { status: 'paid' } }] },
    { content: 'done' },
  ]);
  const run = await runToolLoop({ provider, model: 'm', tools }, [{ role: 'user', content: 'go' }]);
  expect(run.messages.find(({ role }) => role === 'tool')?.content).toBe(
    'all of it\n\nIgnored: status is not an argument of list.',
  );
  expect(run.toolCalls[0]).toMatchObject({ removed: ['status'], result: { forLLM: 'all of it' } });
});

describe('ToolRegistry.call suggests', () => {
  const file: JsonSchema = {
    type: 'object',
    properties: { file_hash: { type: 'string' }, path: { type: 'string' }, encoding: { type: 'string' } },
    required: ['path', 'file_hash'],
  };

  test('the missing required key rather than one that is more similar', async () => {
    expect(await answer(file, { file_path: 'a', file_hash: 'b' })).toContain(
      'There is no property "file_path"; did you mean "path"?',
    );
  });

  test('a key that contains the key that was sent', async () => {
    const schema = { type: 'object', properties: { file_path: { type: 'string' } }, required: ['file_path'] };
    expect(await answer(schema, { path: 'a' })).toContain(
      'There is no property "path"; did you mean "file_path"?',
    );
  });

  test('the nearest value of an enum that is too long to list', async () => {
    const champions = [...Array.from({ length: 150 }, (_, index) => `Champion ${index}`), 'Jinx'];
    const schema = { type: 'object', properties: { champion: { enum: champions } } };
    expect(await answer(schema, { champion: 'JINX' })).toContain('For champion, did you mean "Jinx"?');
  });

  test('the three nearest tool names', async () => {
    const names = [
      'search_orders',
      'search_order',
      'searchorders2',
      'place_order',
      'search_orders_by_date',
      'x',
    ];
    const tools = new ToolRegistry().register(
      ...names.map((name) => defineTool({ name, description: name, parameters: {}, execute: () => '' })),
    );
    const { content } = await tools.call({ name: 'search_ordrs' });
    expect(content.split('\n')).toEqual([
      'tool not found: search_ordrs',
      'Did you mean search_orders, search_order, searchorders2?',
    ]);
    expect((await tools.call({ name: 'fly' })).content).toBe('tool not found: fly');
  });
});

describe('ToolRegistry.call reports', () => {
  test('a format with an example, without the equivalent pattern', async () => {
    const due = z.toJSONSchema(z.object({ due: z.iso.datetime(), at: z.email() })) as JsonSchema;
    expect((await answer(due, { due: 'tomorrow', at: 'anna' })).slice(1, 3)).toEqual([
      '  - due: must match format "date-time", e.g. 2026-01-31T09:30:00Z',
      '  - at: must match format "email"',
    ]);
  });

  test('a pattern beside a format that the text matches, with an example that matches both', async () => {
    const text = (format: string, pattern: string): JsonSchema => ({ type: 'string', format, pattern });
    const schema: JsonSchema = {
      type: 'object',
      properties: {
        at: text('email', '@example\\.com$'),
        from: text('date', '-01$'),
        due: text('date-time', 'Z$'),
        by: text('date-time', 'Z$'),
      },
    };
    const due = '2026-02-01T10:00:00+01:00';
    const told = await answer(schema, { at: 'anna@shop.example', from: '2026-02-28', due, by: 'soon' });
    expect(told.slice(1, 5)).toEqual([
      '  - at: must match pattern "@example\\.com$"',
      '  - from: must match pattern "-01$"',
      '  - due: must match pattern "Z$", e.g. 2026-01-31T09:30:00Z',
      '  - by: must match format "date-time", e.g. 2026-01-31T09:30:00Z',
    ]);
  });

  test('a thrown value that is not an error as JSON', async () => {
    const thrown: readonly unknown[] = [{ code: 5, reason: 'closed' }, ['a', 1], {}, 'text', new Map()];
    const contents: string[] = [];
    for (const each of thrown) {
      const tools = new ToolRegistry().register(
        defineTool({
          name: 'fail',
          description: 'x',
          parameters: {},
          execute: () => {
            throw each;
          },
        }),
      );
      contents.push((await tools.call({ name: 'fail' })).content);
    }
    expect(contents).toEqual([
      '{"code":5,"reason":"closed"}',
      '["a",1]',
      'an error without a message was thrown',
      'text',
      'an error without a message was thrown',
    ]);
  });
});

describe('ToolRegistry.call with a key that matches no pattern of its schema', () => {
  const rates: JsonSchema = { type: 'object', propertyNames: { pattern: '^x-[\\s\\S]*$' } };
  const named: JsonSchema = {
    type: 'object',
    patternProperties: { '^x-': { type: 'number' }, '^y-': { type: 'number' } },
    additionalProperties: false,
  };

  test('reports the key and the patterns', async () => {
    expect(
      await answer({ ...rates, additionalProperties: { type: 'number' } }, { 'x-a': 1, 'y-rate': 2 }),
    ).toEqual([
      "Validation failed for tool 'list':",
      '  - y-rate: this key must match pattern "^x-[\\s\\S]*$"',
      'Received: {"x-a":1,"y-rate":2}',
    ]);
    expect(await answer(named, { 'x-a': 1, z: 2 })).toContain(
      '  - z: is not a known property, and this key does not match pattern "^x-" or "^y-"',
    );
  });

  test('reports each key with its path, along with invalid values', async () => {
    const schema: JsonSchema = {
      type: 'object',
      properties: {
        rates: { ...rates, additionalProperties: { type: 'number' } },
        named,
        sizes: { type: 'object', propertyNames: { enum: ['s', 'm'] } },
        none: { type: 'object', propertyNames: false },
      },
    };
    const sent = {
      rates: { a: 'b', 'x-a': 'c' },
      named: { 'x-a': true, z: 1 },
      sizes: { l: 1 },
      none: { a: 1 },
    };
    expect(await answer(schema, sent)).toEqual([
      "Validation failed for tool 'list':",
      '  - rates.a: this key must match pattern "^x-[\\s\\S]*$"',
      '  - rates.a: must be number',
      '  - rates.x-a: must be number',
      '  - named.z: is not a known property, and this key does not match pattern "^x-" or "^y-"',
      '  - named.x-a: must be number',
      '  - sizes.l: this key must be one of: "s", "m"',
      '  - none.a: this key must not be sent',
      `Received: ${JSON.stringify(sent)}`,
    ]);
  });
});
