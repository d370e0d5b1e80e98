import { describe, expect, test } from '@jest/globals';
import { callsFor, offer } from './offline-tools.js';

describe('a single request', () => {
  test.each([
    ['Calculate 2^10 - 24', 'calculate', { expression: '2^10 - 24' }],
    ['What is (1.5 + 2) * -3?', 'calculate', { expression: '(1.5 + 2) * -3' }],
    ['What time is it?', 'get_current_time', {}],
    ['What time is it in Europe/Paris?', 'get_current_time', { timezone: 'Europe/Paris' }],
    ['Which of my notes mention invoices?', 'search_notes', { query: 'invoices' }],
    ['Find notes about the quarterly report', 'search_notes', { query: 'quarterly report' }],
    ['Search notes for budget, limit 5', 'search_notes', { query: 'budget', limit: 5 }],
    ['Search my notes for "milk and eggs"', 'search_notes', { query: 'milk and eggs' }],
    ['Which invoices are overdue?', 'list_invoices', { status: 'overdue' }],
    ['List the open invoices of Acme', 'list_invoices', { status: 'open', customer: 'Acme' }],
  ])('"%s" calls the matching tool', async (prompt, name, args) => {
    expect(await callsFor(prompt)).toEqual([[name, args]]);
  });

  test('quoted texts fill the parameters named before them', async () => {
    expect(await callsFor('Add a note titled "Shopping" with the text "milk, eggs and bread"')).toEqual([
      ['add_note', { title: 'Shopping', text: 'milk, eggs and bread' }],
    ]);
  });
});

describe('several requests in one message', () => {
  test('a sentence with two questions calls two tools in the same order', async () => {
    expect(await callsFor('What is 12 * (3 + 4), and which of my notes mention invoices?')).toEqual([
      ['calculate', { expression: '12 * (3 + 4)' }],
      ['search_notes', { query: 'invoices' }],
    ]);
  });

  test('two sentences call two tools', async () => {
    expect(await callsFor('How much is 17*3? And what are the paid invoices?')).toEqual([
      ['calculate', { expression: '17*3' }],
      ['list_invoices', { status: 'paid' }],
    ]);
  });

  test('a second complete set of numbers makes a second call', async () => {
    const radius = { type: 'number', description: 'Radius of the circle' };
    const area = offer('circle_area', 'Area of a circle', { radius }, ['radius']);
    const prompt =
      'One circle has a radius of 2.5 cm, the other circle has a radius of 4 cm. What is the area?';
    expect(await callsFor(prompt, [area])).toEqual([
      ['circle_area', { radius: 2.5 }],
      ['circle_area', { radius: 4 }],
    ]);
  });
});

describe('prompts without a call', () => {
  test.each(['Hello!', 'Thank you Bob', 'Tell me a joke about cats', ''])(
    '%j calls no tool',
    async (prompt) => {
      expect(await callsFor(prompt)).toEqual([]);
    },
  );

  test('a tool is not called if its required arguments are not in the text', async () => {
    expect(await callsFor('Search my notes')).toEqual([]);
    expect(await callsFor('Calculate something')).toEqual([]);
  });
});

describe('ranking of tools', () => {
  test('a match in the name ranks above a match in the description', async () => {
    const named = offer('rename_file', 'Does something');
    const described = offer('do_something', 'Works on a file');
    expect(await callsFor('the file', [described, named])).toEqual([['rename_file', {}]]);
    expect(await callsFor('the file', [described])).toEqual([['do_something', {}]]);
  });

  test('a text that shares no word with a tool calls nothing', async () => {
    expect(await callsFor('xylophone')).toEqual([]);
    expect(await callsFor('notes', [])).toEqual([]);
  });

  test('names in camel case and with dots are split into words', async () => {
    const tools = [offer('mail.sendLetter', 'One'), offer('mail.openBox', 'Two')];
    expect(await callsFor('open the box', tools)).toEqual([['mail.openBox', {}]]);
  });
});
