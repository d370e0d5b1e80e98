import { expect, test } from '@jest/globals';
import { TOOL_NAME, toSnakeCase } from '../../../src/discovery/freeze-tool.js';

test.each([
  ['findOrders', 'find_orders'],
  ['getHTTPStatus', 'get_http_status'],
  ['search', 'search'],
  ['parseURL', 'parse_url'],
  ['to2D', 'to2_d'],
  ['already_snake', 'already_snake'],
  ['HTMLToText', 'html_to_text'],
  ['$find', '_find'],
])('the method %s is offered as %s', (method, tool) => {
  expect(toSnakeCase(method)).toBe(tool);
});

test.each(['', '1st', '-x', 'with space', 'dots.in', 'ä', 'a'.repeat(65)])('%j is no tool name', (name) => {
  expect(TOOL_NAME.test(name)).toBe(false);
});

test.each(['a', '_x', 'read_file', 'Read-File', 'a'.repeat(64)])('%j is a tool name', (name) => {
  expect(TOOL_NAME.test(name)).toBe(true);
});
