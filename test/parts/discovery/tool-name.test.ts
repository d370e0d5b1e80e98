import { expect, test } from '@jest/globals';
import { defineTool, discoverTools, ToolDeclarationError } from 'toolwright';
import { Tool, Toolset } from 'toolwright/decorators';

function offeredNameOf(method: string): string | undefined {
  class Names {
    [name: string]: () => string;
  }
  Object.defineProperty(Names.prototype, method, { value: () => 'done', configurable: true, writable: true });
  const descriptor = Object.getOwnPropertyDescriptor(Names.prototype, method) ?? {};
  Tool('Does it')(Names.prototype, method, descriptor);
  Toolset()(Names);
  return discoverTools({ toolsets: [Names] })[0]?.name;
}

test.each([
  ['findOrders', 'find_orders'],
  ['getHTTPStatus', 'get_http_status'],
  ['search', 'search'],
  ['parseURL', 'parse_url'],
  ['to2D', 'to2_d'],
  ['already_snake', 'already_snake'],
  ['HTMLToText', 'html_to_text'],
  ['$find', '_find'],
])('discoverTools offers the method %s as %s', (method, tool) => {
  expect(offeredNameOf(method)).toBe(tool);
});

function named(name: string) {
  const parameters = { type: 'object', properties: {} };
  return defineTool({ name, description: 'Does it', parameters, execute: () => 'done' });
}

test.each(['', '1st', '-x', 'with space', 'dots.in', 'ä', 'a'.repeat(65)])(
  'defineTool refuses %j as a name',
  (name) => {
    expect(() => named(name)).toThrow(ToolDeclarationError);
  },
);

test.each(['a', '_x', 'read_file', 'Read-File', 'a'.repeat(64)])(
  'defineTool accepts %j as a name',
  (name) => {
    expect(named(name).name).toBe(name);
  },
);
