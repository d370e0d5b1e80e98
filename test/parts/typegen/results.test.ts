import { afterAll, expect, test } from '@jest/globals';
import { closeCompilers } from './compilers.js';
import { generateTool } from './small-project.js';

afterAll(closeCompilers);

test.each([
  ['a list with holes', '(string | undefined)[]', "{ type: 'array', items: { type: ['string', 'null'] } }"],
  [
    'a list of nothing or one word',
    "(null | 'x' | undefined)[]",
    "items: { type: ['string', 'null'], enum: ['x', null] }",
  ],
  [
    'a list with holes for one word',
    "('x' | undefined)[]",
    "items: { type: ['string', 'null'], enum: ['x', null] }",
  ],
  ['a tuple with a hole', '[string, number | undefined]', "{ type: ['number', 'null'] }"],
  [
    'a property with a hole',
    '{ a: string | undefined }',
    "properties: { a: { type: 'string' } }, required: []",
  ],
])('%s is what JSON.stringify makes of it', async (_, type, schema) => {
  const { faults, text } = await generateTool(`  @Tool() run(): Promise<${type}> { throw 0; }`);
  expect(faults).toEqual([]);
  expect(text.replace(/\s+/g, ' ').replaceAll(', }', ' }')).toContain(schema);
});

test('functions, methods, private members and getters of classes are left out, as JSON leaves them out', async () => {
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
  ['@Exclude() on the way out', '@Exclude({ toPlainOnly: true }) password!: string; id = 1'],
  [
    '@Exclude() on both ways',
    '@Exclude({ toPlainOnly: true, toClassOnly: true }) password!: string; @Exclude({ toClassOnly: true }) id = 1',
  ],
])('what %s keeps out of a response is not a part of a result', async (_, members) => {
  const before = `import { Exclude } from 'class-transformer';\nclass User { ${members} }`;
  const { faults, text } = await generateTool('  @Tool() run(): User[] { throw 0; }', before);
  expect(faults).toEqual([]);
  expect(text.replace(/\s+/g, ' ')).toContain(
    "items: { type: 'object', properties: { id: { type: 'number' } }, required: ['id'] }",
  );
});

test('of a class that is excluded as a whole, only what is exposed is part of a result', async () => {
  const before = `import { Exclude, Expose } from 'class-transformer';
    @Exclude() class User { @Expose() id = 1; password!: string; }`;
  const { faults, text } = await generateTool('  @Tool() run(): User { throw 0; }', before);
  expect(faults).toEqual([]);
  expect(text).toContain("properties: { id: { type: 'number' } }");
  expect(text).not.toContain('password');
});

test.each(['AsyncGenerator<string, Date>', 'AsyncGenerator<string, Date, undefined>'])(
  '%s leads to what it returns',
  async (type) => {
    const { text } = await generateTool(`  @Tool() async *run(): ${type} { throw 0; }`);
    expect(text).toContain("output: { type: 'string', format: 'date-time' }");
  },
);

test.each(['AsyncIterable<string>', 'AsyncIterableIterator<string>', 'AsyncIterator<string>'])(
  'what %s leads to is not known',
  async (type) => {
    const { faults, text } = await generateTool(`  @Tool() run(): ${type} { throw 0; }`);
    expect(faults).toEqual([]);
    expect(text).not.toContain('output');
  },
);
