import { describe, expect, test } from '@jest/globals';
import { fillArguments } from '../../../src/providers/offline/fill-arguments.js';
import { readValues } from '../../../src/providers/offline/read-text.js';

type Schema = Parameters<typeof fillArguments>[0];

const fill = (text: string, properties: NonNullable<Schema['properties']>, required?: string[]) =>
  fillArguments({ type: 'object', properties, required: required ?? Object.keys(properties) }, text, {
    own: new Set(),
    year: 2024,
  }).calls;

const string = { type: 'string' };
const integer = { type: 'integer' };

describe('values found in a text', () => {
  test.each([
    ['on 2023-04-05', 'date', '2023-04-05'],
    ['on March 5th, 2025', 'date', '2025-03-05'],
    ['on the 5th of March', 'date', '2024-03-05'],
    ['at 3:30 pm', 'time', '15:30'],
    ['at 12 am', 'time', '00:00'],
    ['at -4.5 degrees', 'number', -4.5],
    ['for 1,200 people', 'number', 1200],
    ['for seven people', 'number', 7],
    ['with 5%', 'percent', 5],
    ['with “all of it”', 'quoted', 'all of it'],
    ['to ada@example.com', 'name', 'ada@example.com'],
    ['for order AB-1010', 'name', 'AB-1010'],
    ['in Austin, Texas', 'name', 'Austin, Texas'],
    ["for Germany's team", 'name', 'Germany'],
    ['with (2 + 3) * 4', 'expression', '(2 + 3) * 4'],
  ])('%s', (text, kind, value) => {
    const found = readValues(text, new Set(), 2024).filter((one) => one.kind !== 'phrase');
    expect(found).toContainEqual(expect.objectContaining({ kind, value }));
  });

  test('an apostrophe opens no quotation', () => {
    const found = readValues("I don't know what's up", new Set(), 2024);
    expect(found.filter(({ kind }) => kind === 'quoted')).toEqual([]);
  });

  test('the capital that opens a sentence makes no name', () => {
    const found = readValues('Translate it. Find Yamaha', new Set(['find']), 2024);
    expect(found.filter(({ kind }) => kind === 'name').map(({ value }) => value)).toEqual(['Yamaha']);
  });
});

describe('filling by schema', () => {
  test('numbers go to the parameters that are named beside them', () => {
    const properties = { height: integer, width: integer };
    expect(fill('a width of 20 and a height of 10', properties)).toEqual([{ height: 10, width: 20 }]);
  });

  test('an integer takes no decimals', () => {
    expect(fill('limit of 2.5', { limit: integer })).toEqual([]);
  });

  test('a percentage is a share for a number, unless the parameter is in percent', () => {
    expect(fill('a rate of 5%', { rate: { type: 'number' } })).toEqual([{ rate: 0.05 }]);
    expect(fill('a rate of 5%', { rate: { type: 'number', description: 'In percent' } })).toEqual([
      { rate: 5 },
    ]);
  });

  test('places are told apart by the word before them', () => {
    const properties = { destination: string, origin: string };
    expect(fill('a train from Oslo to Bergen', properties)).toEqual([
      { destination: 'Bergen', origin: 'Oslo' },
    ]);
  });

  test('a date takes the form that the description shows', () => {
    const day = { type: 'string', description: 'Date, as DD/MM/YYYY' };
    expect(fill('on March 5th', { day })).toEqual([{ day: '05/03/2024' }]);
    expect(fill('on March 5th', { day: { type: 'string', format: 'date' } })).toEqual([
      { day: '2024-03-05' },
    ]);
  });

  test('a place takes the form of an example that begins with it', () => {
    const city = { type: 'string', description: "such as 'Berkeley, CA'" };
    expect(fill('a stylist in Berkeley', { city })).toEqual([{ city: 'Berkeley, CA' }]);
  });

  test('members of an enumeration are found in any case, the longest first', () => {
    const cabin = { type: 'string', enum: ['economy', 'premium economy'] };
    expect(fill('A Premium Economy seat', { cabin })).toEqual([{ cabin: 'premium economy' }]);
    expect(fill('a seat', { cabin })).toEqual([]);
  });

  test('a numeric enumeration takes its members only', () => {
    expect(fill('a table for 3', { seats: { type: 'integer', enum: [2, 4] } })).toEqual([]);
    expect(fill('a table for 4', { seats: { type: 'integer', enum: [2, 4] } })).toEqual([{ seats: 4 }]);
  });

  test('yes and no are read from the name and a negation before it', () => {
    const smoking = { type: 'boolean' };
    expect(fill('a smoking room', { smoking })).toEqual([{ smoking: true }]);
    expect(fill('a room without any smoking', { smoking })).toEqual([{ smoking: false }]);
    expect(fill('a room', { smoking }, [])).toEqual([{}]);
  });

  test('arrays take what stands side by side', () => {
    const numbers = { type: 'array', items: { type: 'number' } };
    const sizes = { type: 'array', items: { type: 'string', enum: ['small', 'large'] } };
    expect(fill('the mean of 1, 2.5 and -3', { numbers })).toEqual([{ numbers: [1, 2.5, -3] }]);
    expect(fill('small and large shirts', { sizes })).toEqual([{ sizes: ['small', 'large'] }]);
  });

  test('a nested object is filled from the same text', () => {
    const options = { type: 'object', properties: { size: { type: 'string', enum: ['small', 'large'] } } };
    expect(fill('a large latte', { options })).toEqual([{ options: { size: 'large' } }]);
  });

  test('null as the other choice changes nothing', () => {
    expect(fill('limit 3', { limit: { type: ['integer', 'null'] } })).toEqual([{ limit: 3 }]);
    expect(fill('limit 3', { limit: { anyOf: [{ type: 'integer' }, { type: 'null' }] } })).toEqual([
      { limit: 3 },
    ]);
  });

  test('what is required and not said takes its default; what is optional is left out', () => {
    const limit = { type: 'integer', default: 10 };
    expect(fill('hello', { limit })).toEqual([{ limit: 10 }]);
    expect(fill('hello', { limit }, [])).toEqual([{}]);
  });

  test('arguments come in the order of the schema', () => {
    const properties = { beta: integer, alpha: integer };
    const [args = {}] = fill('alpha 1 and beta 2', properties);
    expect(Object.keys(args)).toEqual(['beta', 'alpha']);
  });

  test('a schema without properties is filled with nothing', () => {
    expect(fillArguments({ type: 'object' }, 'hello', { own: new Set(), year: 2024 }).calls).toEqual([{}]);
  });
});
