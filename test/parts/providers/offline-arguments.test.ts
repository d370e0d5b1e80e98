import { describe, expect, test } from '@jest/globals';
import { fillArguments, readText } from '../../../src/models/offline/offline-provider.js';

type Schema = Parameters<typeof fillArguments>[0];

const fill = (text: string, properties: NonNullable<Schema['properties']>, required?: string[]) =>
  fillArguments(
    { type: 'object', properties, required: required ?? Object.keys(properties) },
    readText(text, new Set(), 2024),
  );
const valuesIn = (text: string, own: readonly string[] = []) => readText(text, new Set(own), 2024).found;

const string = { type: 'string' };
const integer = { type: 'integer' };

describe('values found in a text', () => {
  test.each([
    ['on 2023-04-05', 'date', '2023-04-05'],
    ['on March 5th, 2025', 'date', '2025-03-05'],
    ['on the 5th of March', 'date', '2024-03-05'],
    ['on Sept. 5', 'date', '2024-09-05'],
    ['at market 5', 'number', 5],
    ['at 3:30 pm', 'time', '15:30'],
    ['at 12 am', 'time', '00:00'],
    ['at -4.5 degrees', 'number', -4.5],
    ['for 1,200 people', 'number', 1200],
    ['with 5%', 'number', 5],
    ['with “all of it”', 'quoted', 'all of it'],
    ['to ada@example.com', 'name', 'ada@example.com'],
    ['for order AB-1010', 'name', 'AB-1010'],
    ['Read a.txt', 'name', 'a.txt'],
    ['from a/b.txt', 'name', 'a/b.txt'],
    ['to i@example.com', 'name', 'i@example.com'],
    ['in Austin, TX', 'name', 'Austin, TX'],
    ["for Germany's team", 'name', 'Germany'],
    ['with (2 + 3) * 4', 'expression', '(2 + 3) * 4'],
  ])('%s', (text, kind, value) => {
    const found = valuesIn(text).filter((one) => one.kind !== 'phrase');
    expect(found).toContainEqual(expect.objectContaining({ kind, value }));
  });

  test('an apostrophe opens no quotation', () => {
    const found = valuesIn("I don't know what's up");
    expect(found.filter(({ kind }) => kind === 'quoted')).toEqual([]);
  });

  test('the capital that opens a sentence makes no name', () => {
    const found = valuesIn('Translate it. Find Yamaha', ['find']);
    expect(found.filter(({ kind }) => kind === 'name').map(({ value }) => value)).toEqual(['Yamaha']);
  });
});

describe('filling by schema', () => {
  test('a text in quotes goes to an optional parameter only if the prompt names it', () => {
    const properties = { title: string, note: string };
    const ticket = (text: string) => fill(text, properties, ['title']);
    expect(ticket('Create a ticket "Broken lamp" for "Ada"')).toEqual({ title: 'Broken lamp' });
    expect(ticket('Create a ticket with the title "Broken lamp" and the note "urgent"')).toEqual({
      title: 'Broken lamp',
      note: 'urgent',
    });
  });

  test('numbers go to the parameters that are named beside them', () => {
    const properties = { height: integer, width: integer };
    expect(fill('a width of 20 and a height of 10', properties)).toEqual({ height: 10, width: 20 });
  });

  test('an integer takes no decimals', () => {
    expect(fill('limit of 2.5', { limit: integer })).toBeUndefined();
  });

  test('places are told apart by the word before them', () => {
    const properties = { destination: string, origin: string };
    expect(fill('a train from Oslo to Bergen', properties)).toEqual({
      destination: 'Bergen',
      origin: 'Oslo',
    });
  });

  test('a date goes to a text that asks for one, and to no other', () => {
    const day = { type: 'string', format: 'date' };
    expect(fill('on March 5th', { day })).toEqual({ day: '2024-03-05' });
    expect(fill('on March 5th', { city: string })).toBeUndefined();
  });

  test('a place takes the form of an example that begins with it', () => {
    const city = { type: 'string', description: "such as 'Berkeley, CA'" };
    expect(fill('a stylist in Berkeley', { city })).toEqual({ city: 'Berkeley, CA' });
  });

  test('members of an enumeration are found in any case, the longest first', () => {
    const cabin = { type: 'string', enum: ['economy', 'premium economy'] };
    expect(fill('A Premium Economy seat', { cabin })).toEqual({ cabin: 'premium economy' });
    expect(fill('a seat', { cabin })).toBeUndefined();
  });

  test('a numeric enumeration takes its members only', () => {
    expect(fill('a table for 3', { seats: { type: 'integer', enum: [2, 4] } })).toBeUndefined();
    expect(fill('a table for 4', { seats: { type: 'integer', enum: [2, 4] } })).toEqual({ seats: 4 });
  });

  test('yes and no are read from the name and a negation before it', () => {
    const smoking = { type: 'boolean' };
    expect(fill('a smoking room', { smoking })).toEqual({ smoking: true });
    expect(fill('a room without any smoking', { smoking })).toEqual({ smoking: false });
    expect(fill('a room', { smoking }, [])).toEqual({});
  });

  test('an array takes all values of a kind that single parameters leave', () => {
    const numbers = { type: 'array', items: { type: 'number' } };
    const sizes = { type: 'array', items: { type: 'string', enum: ['small', 'large'] } };
    expect(fill('the mean of 1, 2.5 and -3', { numbers })).toEqual({ numbers: [1, 2.5, -3] });
    expect(fill('the mean of 1, 2 and 3 with digits 4', { numbers, digits: integer })).toEqual({
      numbers: [1, 2, 3],
      digits: 4,
    });
    expect(fill('small and large shirts', { sizes })).toEqual({ sizes: ['small', 'large'] });
  });

  test('a nested object is filled from the same text', () => {
    const options = { type: 'object', properties: { size: { type: 'string', enum: ['small', 'large'] } } };
    expect(fill('a large latte', { options })).toEqual({ options: { size: 'large' } });
  });

  test('null as the other choice changes nothing', () => {
    expect(fill('limit 3', { limit: { type: ['integer', 'null'] } })).toEqual({ limit: 3 });
    expect(fill('limit 3', { limit: { anyOf: [{ type: 'integer' }, { type: 'null' }] } })).toEqual({
      limit: 3,
    });
  });

  test('what is required and not said leaves nothing to call with; what is optional is left out', () => {
    expect(fill('hello', { limit: integer })).toBeUndefined();
    expect(fill('hello', { limit: integer }, [])).toEqual({});
  });

  test('arguments come in the order of the schema', () => {
    const properties = { beta: integer, alpha: integer };
    const args = fill('alpha 1 and beta 2', properties);
    expect(Object.keys(args ?? {})).toEqual(['beta', 'alpha']);
  });

  test('a schema without properties is filled with nothing', () => {
    expect(fillArguments({ type: 'object' }, readText('hello', new Set(), 2024))).toEqual({});
  });
});
