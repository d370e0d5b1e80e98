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
  ])('finds the value in "%s"', (text, kind, value) => {
    const found = valuesIn(text).filter((one) => one.kind !== 'phrase');
    expect(found).toContainEqual(expect.objectContaining({ kind, value }));
  });

  test('an apostrophe does not start a quotation', () => {
    const found = valuesIn("I don't know what's up");
    expect(found.filter(({ kind }) => kind === 'quoted')).toEqual([]);
  });

  test('a capital letter at the start of a sentence does not make a name', () => {
    const found = valuesIn('Translate it. Find Yamaha', ['find']);
    expect(found.filter(({ kind }) => kind === 'name').map(({ value }) => value)).toEqual(['Yamaha']);
  });
});

describe('arguments by schema', () => {
  test('a quoted text fills an optional parameter only if the prompt names the parameter', () => {
    const properties = { title: string, note: string };
    const ticket = (text: string) => fill(text, properties, ['title']);
    expect(ticket('Create a ticket "Broken lamp" for "Ada"')).toEqual({ title: 'Broken lamp' });
    expect(ticket('Create a ticket with the title "Broken lamp" and the note "urgent"')).toEqual({
      title: 'Broken lamp',
      note: 'urgent',
    });
  });

  test('numbers fill the parameters named next to them', () => {
    const properties = { height: integer, width: integer };
    expect(fill('a width of 20 and a height of 10', properties)).toEqual({ height: 10, width: 20 });
  });

  test('an integer parameter does not accept a decimal number', () => {
    expect(fill('limit of 2.5', { limit: integer })).toBeUndefined();
  });

  test('places are assigned by the preposition before them', () => {
    const properties = { destination: string, origin: string };
    expect(fill('a train from Oslo to Bergen', properties)).toEqual({
      destination: 'Bergen',
      origin: 'Oslo',
    });
  });

  test('a date fills only a string parameter with the date format', () => {
    const day = { type: 'string', format: 'date' };
    expect(fill('on March 5th', { day })).toEqual({ day: '2024-03-05' });
    expect(fill('on March 5th', { city: string })).toBeUndefined();
  });

  test('a place is completed from an example in the description that starts with it', () => {
    const city = { type: 'string', description: "such as 'Berkeley, CA'" };
    expect(fill('a stylist in Berkeley', { city })).toEqual({ city: 'Berkeley, CA' });
  });

  test('enum values match in any case, and the longest match wins', () => {
    const cabin = { type: 'string', enum: ['economy', 'premium economy'] };
    expect(fill('A Premium Economy seat', { cabin })).toEqual({ cabin: 'premium economy' });
    expect(fill('a seat', { cabin })).toBeUndefined();
  });

  test('a numeric enum accepts only its own values', () => {
    expect(fill('a table for 3', { seats: { type: 'integer', enum: [2, 4] } })).toBeUndefined();
    expect(fill('a table for 4', { seats: { type: 'integer', enum: [2, 4] } })).toEqual({ seats: 4 });
  });

  test('a boolean is true if the prompt names the parameter, and false after a negation', () => {
    const smoking = { type: 'boolean' };
    expect(fill('a smoking room', { smoking })).toEqual({ smoking: true });
    expect(fill('a room without any smoking', { smoking })).toEqual({ smoking: false });
    expect(fill('a room', { smoking }, [])).toEqual({});
  });

  test('an array collects the values that single parameters do not use', () => {
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

  test('a nullable parameter is filled like one that is not nullable', () => {
    expect(fill('limit 3', { limit: { type: ['integer', 'null'] } })).toEqual({ limit: 3 });
    expect(fill('limit 3', { limit: { anyOf: [{ type: 'integer' }, { type: 'null' }] } })).toEqual({
      limit: 3,
    });
  });

  test('a missing required argument gives no arguments; a missing optional one is left out', () => {
    expect(fill('hello', { limit: integer })).toBeUndefined();
    expect(fill('hello', { limit: integer }, [])).toEqual({});
  });

  test('arguments have the order of the schema', () => {
    const properties = { beta: integer, alpha: integer };
    const args = fill('alpha 1 and beta 2', properties);
    expect(Object.keys(args ?? {})).toEqual(['beta', 'alpha']);
  });

  test('a schema without properties gives empty arguments', () => {
    expect(fillArguments({ type: 'object' }, readText('hello', new Set(), 2024))).toEqual({});
  });
});
