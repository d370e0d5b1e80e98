import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type SearchedTool, ToolIndex } from 'toolwright';
import { anyCharacter } from '../../setup/any-character.js';

function indexOf(tools: readonly SearchedTool[]): ToolIndex {
  const index = new ToolIndex();
  for (const tool of tools) index.add(tool);
  return index;
}

const OFFICE: readonly SearchedTool[] = [
  { name: 'getInvoiceStatus', description: 'Tells where a bill stands' },
  { name: 'list_open_invoices', description: 'All invoices that nobody has paid yet' },
  { name: 'send_mail', description: 'Sends a letter to a customer' },
  {
    name: 'convert',
    description: 'Turns one thing into another',
    parameters: {
      type: 'object',
      properties: {
        unit: { type: 'string', enum: ['celsius', 'fahrenheit'], description: 'Of the thermometer' },
        nested: { type: 'object', properties: { altitude: { type: 'number' } } },
      },
    },
  },
  { name: 'XMLHttpRequest', description: '' },
];

describe('ToolIndex finds a tool by', () => {
  const index = indexOf(OFFICE);
  const cases: readonly (readonly [string, string, string])[] = [
    ['the parts of a name in camelCase', 'status of an invoice', 'getInvoiceStatus'],
    ['the parts of a name in snake_case', 'OPEN INVOICES', 'list_open_invoices'],
    ['the parts of a name with an acronym', 'http', 'XMLHttpRequest'],
    ['another form of a word', 'what was converted', 'convert'],
    ['a synonym', 'write an e-mail to our client', 'send_mail'],
    ['a nested parameter', 'altitude', 'convert'],
    ['the description of a parameter', 'thermometers', 'convert'],
    ['an enum value of a parameter', 'Fahrenheit', 'convert'],
  ];
  test.each(cases)('%s', (_what, query, name) => {
    expect(index.search(query)[0]).toBe(name);
  });
});

test('ToolIndex returns a tool named in the query first', () => {
  const others = Array.from({ length: 50 }, (_, number) => ({
    name: `send_mail_${number}`,
    description: 'send mail send mail to everybody',
  }));
  const index = indexOf([...others, { name: 'SEND_MAIL', description: 'Old' }, ...OFFICE]);
  expect(index.search('please use send_mail for the mail', { limit: 3 }).slice(0, 2)).toEqual([
    'SEND_MAIL',
    'send_mail',
  ]);
  expect(index.search('Convert')).toContain('convert');
});

test.each([
  ['HTTPgetStatus', 'getstatus'],
  ['4readFile,', 'readfile'],
  ['«1.2.Read_file.now-»', 'read_file.now'],
])('ToolIndex reads %s as a name', (query, name) => {
  const index = indexOf([{ name }, { name: 'other', description: 'HTTP get status, read file now' }]);
  expect(index.search(`${query} please`)[0]).toBe(name);
});

test('ToolIndex searches a very long word in linear time', () => {
  const index = indexOf(OFFICE);
  // Starting again at each of these characters would take almost an hour.
  const word = 'x'.repeat(2_000_000);
  expect(index.search(`${word} send_mail`)).toEqual(['send_mail']);
  expect(index.search(`${word.toUpperCase()} send_mail`)).toEqual(['send_mail']);
});

test('ToolIndex finds tools of scripts without spaces, and with accents', () => {
  const index = indexOf([
    { name: 'bing_search', description: '使用必应搜索指定的关键词' },
    { name: 'weather', description: '天気予報を調べる' },
    { name: 'cafes', description: 'Trouve un café près d’ici' },
  ]);
  expect(index.search('帮我搜索一下')[0]).toBe('bing_search');
  expect(index.search('明日の天気は？')[0]).toBe('weather');
  expect(index.search('cafe')[0]).toBe('cafes');
});

test('ToolIndex returns a tool for each need in the query before a second one for the same need', () => {
  const mails = ['send', 'forward', 'answer', 'archive', 'star'].map((verb) => ({
    name: `${verb}_mail`,
    description: `Lets you ${verb} mail of your mail box`,
  }));
  const index = indexOf([...mails, { name: 'book_table', description: 'Reserves a table in a restaurant' }]);
  expect(index.search('mail my mail box about mails, and book a table', { limit: 3 })).toContain(
    'book_table',
  );
});

test('ToolIndex returns only accepted tools, and no more than the limit', () => {
  const index = indexOf(OFFICE);
  const accepts = (name: string): boolean => name !== 'list_open_invoices';
  expect(index.search('list_open_invoices', { accepts })).toEqual(['getInvoiceStatus']);
  expect(index.search('invoice', { limit: 1 })).toHaveLength(1);
  expect(index.search('')).toEqual([]);
  expect(index.search('the of and')).toEqual([]);
  expect(index.search('constructor __proto__ toString')).toEqual([]);
});

const WORDS = [
  'invoice',
  'mail',
  'order',
  'sendMail',
  'find_orders',
  'create',
  'constructor',
  'ß',
  '搜索',
  'a',
];
const text = fc.array(fc.constantFrom(...WORDS), { maxLength: 6 }).map((words) => words.join(' '));
const tool = fc.record({
  name: fc.constantFrom('a', 'b', 'c', 'A', 'send_mail', 'find', '__proto__', 'x1', 'x2', 'x3'),
  description: text,
  namespace: fc.option(text, { nil: undefined }),
});
const step = fc.oneof(
  fc.record({ add: tool }),
  fc.record({ remove: fc.constantFrom('a', 'b', 'A', 'find', '__proto__', 'x1') }),
);

test('ToolIndex returns results that depend only on its current tools', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), text, (steps, query) => {
      const lived = new ToolIndex();
      const has = new Map<string, SearchedTool>();
      for (const item of steps) {
        if ('add' in item) {
          lived.add(item.add);
          has.set(item.add.name, item.add);
        } else {
          lived.remove(item.remove);
          has.delete(item.remove);
        }
      }
      const made = indexOf([...has.values()].reverse());
      expect(lived.size).toBe(has.size);
      expect(lived.search(query, { limit: 10 })).toEqual(made.search(query, { limit: 10 }));
      for (const name of lived.search(query)) expect(has.has(name)).toBe(true);
    }),
  );
});

test('ToolIndex accepts any text as a query and any schema as parameters', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 60 }), fc.jsonValue(), (query, schema) => {
      const index = indexOf([...OFFICE, { name: 'odd', description: query, parameters: schema as never }]);
      expect(index.search(query).length).toBeLessThanOrEqual(5);
    }),
  );
});
