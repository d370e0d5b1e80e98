import { afterAll, expect, test } from '@jest/globals';
import { closeCompilers } from './compilers.js';
import { generateTool } from './small-project.js';

afterAll(closeCompilers);

test.each([
  [
    'an array with undefined elements',
    '(string | undefined)[]',
    "{ type: 'array', items: { type: ['string', 'null'] } }",
  ],
  [
    'an array of null, undefined or a literal',
    "(null | 'x' | undefined)[]",
    "items: { type: ['string', 'null'], enum: ['x', null] }",
  ],
  [
    'an array of undefined or a literal',
    "('x' | undefined)[]",
    "items: { type: ['string', 'null'], enum: ['x', null] }",
  ],
  ['a tuple with undefined', '[string, number | undefined]', "{ type: ['number', 'null'] }"],
  [
    'a property with undefined',
    '{ a: string | undefined }',
    "properties: { a: { type: 'string' } }, required: []",
  ],
])('the schema of %s matches the output of JSON.stringify', async (_, type, schema) => {
  const { faults, text } = await generateTool(`  @Tool() run(): Promise<${type}> { throw 0; }`);
  expect(faults).toEqual([]);
  expect(text.replace(/\s+/g, ' ').replaceAll(', }', ' }')).toContain(schema);
});

test('functions, methods, private members and getters of classes are omitted, as in JSON', async () => {
  const before =
    'class Row { id = 1; save() {} private x = 2; get size() { return this.x; } }\nconst own = { get size() { return 1; } };';
  const { faults, text } = await generateTool(
    '  @Tool() run(): { row: Row; own: typeof own; fn: () => void } { throw 0; }',
    before,
  );
  expect(faults).toEqual([]);
  expect(text).toContain("row: { type: 'object', properties: { id: { type: 'number' } }, required: ['id'] }");
  expect(text).toContain(
    "own: { type: 'object', properties: { size: { type: 'number' } }, required: ['size'] }",
  );
});

test.each([
  ['@Exclude()', '@Exclude() password!: string; id = 1'],
  ['@Exclude({ toPlainOnly })', '@Exclude({ toPlainOnly: true }) password!: string; id = 1'],
  [
    '@Exclude() in both directions',
    '@Exclude({ toPlainOnly: true, toClassOnly: true }) password!: string; @Exclude({ toClassOnly: true }) id = 1',
  ],
])('a property that %s removes from responses is not part of a result', async (_, members) => {
  const before = `import { Exclude } from 'class-transformer';\nclass User { ${members} }`;
  const { faults, text } = await generateTool('  @Tool() run(): User[] { throw 0; }', before);
  expect(faults).toEqual([]);
  expect(text.replace(/\s+/g, ' ')).toContain(
    "items: { type: 'object', properties: { id: { type: 'number' } }, required: ['id'] }",
  );
});

test('a class with @Exclude() has only its exposed properties in a result', async () => {
  const before = `import { Exclude, Expose } from 'class-transformer';
    @Exclude() class User { @Expose() id = 1; password!: string; }`;
  const { faults, text } = await generateTool('  @Tool() run(): User { throw 0; }', before);
  expect(faults).toEqual([]);
  expect(text).toContain("properties: { id: { type: 'number' } }");
  expect(text).not.toContain('password');
});

test.each(['AsyncGenerator<string, Date>', 'AsyncGenerator<string, Date, undefined>'])(
  'the output of %s is its return type',
  async (type) => {
    const { text } = await generateTool(`  @Tool() async *run(): ${type} { throw 0; }`);
    expect(text).toContain("output: { type: 'string', format: 'date-time' }");
  },
);

test.each(['AsyncIterable<string>', 'AsyncIterableIterator<string>', 'AsyncIterator<string>'])(
  'the output of %s is unknown',
  async (type) => {
    const { faults, text } = await generateTool(`  @Tool() run(): ${type} { throw 0; }`);
    expect(faults).toEqual([]);
    expect(text).not.toContain('output');
  },
);
