import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseToolRequest } from 'toolwright';

const REQUEST = '{"tool_request":{"name":"lookup_weather","arguments":{"city":"Lisbon"}}}';

describe('a tool request is a whole message', () => {
  test('an object of the protocol returns name and arguments', () => {
    expect(parseToolRequest(REQUEST)).toEqual({ name: 'lookup_weather', arguments: { city: 'Lisbon' } });
  });

  test('white space around and within it is allowed', () => {
    const spread = `\n ${JSON.stringify(JSON.parse(REQUEST), null, 2)}\t\n`;
    expect(parseToolRequest(spread)).toEqual({ name: 'lookup_weather', arguments: { city: 'Lisbon' } });
  });

  test('missing arguments are an empty object', () => {
    expect(parseToolRequest('{"tool_request":{"name":"list_cities"}}')).toEqual({
      name: 'list_cities',
      arguments: {},
    });
  });

  test('keys inside the arguments are not interpreted', () => {
    const request = parseToolRequest(
      '{"tool_request":{"name":"a","arguments":{"__proto__":{"x":1},"name":2}}}',
    );
    expect(Object.keys(request?.arguments ?? {})).toEqual(['__proto__', 'name']);
    expect(Object.getPrototypeOf(request?.arguments)).toBe(Object.prototype);
  });

  test.each([
    ['text before', `Sure: ${REQUEST}`],
    ['text after', `${REQUEST} Done.`],
    ['a fence', `\`\`\`json\n${REQUEST}\n\`\`\``],
    ['two requests', `${REQUEST}${REQUEST}`],
    ['an array', `[${REQUEST}]`],
    ['a trailing comma', '{"tool_request":{"name":"a","arguments":{}},}'],
    ['a key next to the request', '{"tool_request":{"name":"a","arguments":{}},"id":1}'],
    ['a key within the request', '{"tool_request":{"name":"a","arguments":{},"id":1}}'],
    ['an empty name', '{"tool_request":{"name":"","arguments":{}}}'],
    ['a blank name', '{"tool_request":{"name":" ","arguments":{}}}'],
    ['a name that is a number', '{"tool_request":{"name":1,"arguments":{}}}'],
    ['an empty object', '{}'],
    ['a request without a name', '{"tool_request":{"arguments":{}}}'],
    ['an empty request', '{"tool_request":{}}'],
    ['a request that is null', '{"tool_request":null}'],
    ['a __proto__ key within the request', '{"tool_request":{"name":"a","__proto__":{}}}'],
    ['an inherited name', '{"tool_request":{"__proto__":{"name":"a"}}}'],
    ['parameters instead of arguments', '{"tool_request":{"name":"a","parameters":{}}}'],
    ['a request in upper case', '{"TOOL_REQUEST":{"name":"a","arguments":{}}}'],
    ['a request as text', JSON.stringify(REQUEST)],
    ['arguments as text', '{"tool_request":{"name":"a","arguments":"{}"}}'],
    ['arguments as an array', '{"tool_request":{"name":"a","arguments":[]}}'],
    ['null as arguments', '{"tool_request":{"name":"a","arguments":null}}'],
    ['no request', '{"name":"a","arguments":{}}'],
    ['an inherited request', '{"__proto__":{"tool_request":{"name":"a","arguments":{}}}}'],
    ['null', 'null'],
    ['an empty text', ''],
  ])('%s is plain text', (_, text) => {
    expect(parseToolRequest(text)).toBeUndefined();
  });

  test.each([undefined, null, 1, {}, JSON.parse(REQUEST), [REQUEST]])('%p is not a message', (value) => {
    expect(parseToolRequest(value)).toBeUndefined();
  });

  test('no proper prefix of a request is a request', () => {
    for (let length = 0; length < REQUEST.length; length += 1) {
      expect(parseToolRequest(REQUEST.slice(0, length))).toBeUndefined();
    }
  });

  test('any name and any JSON object are returned as they were sent', () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1 }).filter((name) => name.trim() !== ''),
        fc.dictionary(fc.string(), fc.jsonValue()),
        (name, args) => {
          const text = JSON.stringify({ tool_request: { name, arguments: args } });
          expect(parseToolRequest(text)).toEqual({ name, arguments: JSON.parse(JSON.stringify(args)) });
        },
      ),
    );
  });

  test('no text makes the function throw', () => {
    fc.assert(fc.property(fc.anything(), (value) => void parseToolRequest(value)));
    expect(parseToolRequest(`{"tool_request":${'['.repeat(1_000_000)}`)).toBeUndefined();
  });
});
