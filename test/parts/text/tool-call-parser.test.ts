import { describe, expect, test } from '@jest/globals';
import { ToolCallParser } from 'toolwright';

const TOOLS = ['add', 'get_weather', 'shop.find'];

/** Names and arguments of the calls in a text. */
function calls(text: string, tools: readonly string[] | undefined = TOOLS) {
  return new ToolCallParser({ tools }).parse(text).toolCalls.map((call) => [call.name, call.arguments]);
}

const ADD = '{"name": "add", "arguments": {"a": 42, "b": 58}}';
const ADDED = ['add', { a: 42, b: 58 }];

describe('JSON objects in text', () => {
  test('an object with name and arguments is a call, and the text before it is not trimmed', () => {
    expect(new ToolCallParser({ tools: TOOLS }).parse(`Let me see.  ${ADD} There.`)).toEqual({
      toolCall: { id: 'call_1', name: 'add', arguments: { a: 42, b: 58 } },
      toolCalls: [{ id: 'call_1', name: 'add', arguments: { a: 42, b: 58 } }],
      textBefore: 'Let me see.  ',
    });
  });

  test('the whole of a text without a call is textBefore', () => {
    expect(new ToolCallParser().parse(' Hello {you}. ')).toEqual({
      toolCall: undefined,
      toolCalls: [],
      textBefore: ' Hello {you}. ',
    });
  });

  test('all calls are found in order, and toolCall is the first', () => {
    const { toolCall, toolCalls } = new ToolCallParser().parse(`${ADD}\nand\n{"name":"x","arguments":{}}`);
    expect(toolCall?.name).toBe('add');
    expect(toolCalls.map(({ id, name }) => [id, name])).toEqual([
      ['call_1', 'add'],
      ['call_2', 'x'],
    ]);
  });

  test.each([
    ['bare', ADD],
    ['fenced', `Here:\n\`\`\`json\n${ADD}\n\`\`\``],
    ['in an array', `[${ADD}]`],
    ['with parameters, as Llama 3 writes', '{"name": "add", "parameters": {"a": 42, "b": 58}}'],
    ['with arguments as JSON text', '{"name": "add", "arguments": "{\\"a\\": 42, \\"b\\": 58}"}'],
    [
      'in the OpenAI function shape',
      '{"type":"function","function":{"name":"add","arguments":"{\\"a\\":42,\\"b\\":58}"}}',
    ],
    [
      'in the OpenAI tool_calls shape',
      `{"tool_calls":[{"function":{"name":"add","arguments":"{\\"a\\":42,\\"b\\":58}"}}]}`,
    ],
    ['after a broken object', `{"name": {${ADD}`],
    ['after an unclosed quote', `{"oops: "x <tool_call>${ADD}</tool_call>`],
  ])('a call is found %s', (_, text) => {
    expect(calls(text)).toEqual([ADDED]);
  });

  test('arguments that are not an object are returned as text, to be refused later', () => {
    expect(calls('{"name":"add","arguments":"later"}')).toEqual([['add', 'later']]);
    expect(calls('{"name":"add","arguments":[1]}')).toEqual([['add', '[1]']]);
  });

  test('null as arguments means no arguments', () => {
    expect(calls('{"name":"add","arguments":null}')).toEqual([['add', {}]]);
  });

  test('keys such as __proto__ are data, and inherited properties are not names of tools', () => {
    const [call] = new ToolCallParser().parse('{"name":"add","arguments":{"__proto__":{"x":1}}}').toolCalls;
    expect(Object.keys(call?.arguments ?? {})).toEqual(['__proto__']);
    expect(({} as { x?: number }).x).toBeUndefined();
    expect(calls('{"name":"constructor","arguments":{}}')).toEqual([]);
    expect(calls('{"__proto__":{"name":"add","arguments":{}}}')).toEqual([]);
  });
});

describe('text that is not a call', () => {
  test.each([
    ['an unknown name', '{"name":"rm","arguments":{}}'],
    ['a name that is not text', '{"name":1,"arguments":{}}'],
    ['an object without arguments', '{"name":"add"}'],
    ['a call inside another object', `{"example": ${ADD}}`],
    ['the strict protocol, embedded', `Use {"tool_request": ${ADD}}`],
    [
      "a tool's definition",
      '{"name":"add","parameters":{"type":"object","properties":{"a":{"type":"number"}}}}',
    ],
    ['a call that is cut off', ADD.slice(0, -1)],
    ['an array that is cut off', `[${ADD}, {"name":`],
    ['a parameter tag that is cut off', '<function=add><parameter=a>4'],
    ['a function tag that is not closed', '<function=add><parameter=a>4</parameter>'],
    ['marks without a call', 'Write [TOOL_CALLS] or <tool_call> tags, or <|python_tag|>.'],
    ['a call inside reasoning', `<think>Perhaps <tool_call>${ADD}</tool_call>?</think>No.`],
    ['reasoning that never ends', `<think>Perhaps <tool_call>${ADD}</tool_call>`],
    ['relaxed JSON outside of marks', "{'name': 'add', 'arguments': {}}"],
  ])('%s is not a call', (_, text) => {
    expect(calls(text)).toEqual([]);
  });

  test('without tools, a list in brackets is a call only at the start of the message', () => {
    const parser = new ToolCallParser();
    expect(parser.parse('Also has [function()] syntax.').toolCalls).toEqual([]);
    expect(parser.parse('[function()]').toolCalls).toHaveLength(1);
  });

  test('with an empty list of tools, no text contains a call', () => {
    expect(calls(ADD, [])).toEqual([]);
  });

  test('a value that is not a string contains no calls', () => {
    expect(new ToolCallParser().parse(undefined as unknown as string)).toEqual({
      toolCalls: [],
      textBefore: '',
    });
  });
});

describe('the formats of the model families', () => {
  test.each([
    ['Hermes', `<tool_call>\n${ADD}\n</tool_call>`],
    ['Hermes without its closing tag', `<tool_call>${ADD}`],
    ['Hermes with half of its closing tag', `<tool_call>${ADD}\n</tool_`],
    ['Granite', `<|tool_call|>[${ADD}]`],
    ['Llama 3 with its tag', '<|python_tag|>{"name": "add", "parameters": {"a": 42, "b": 58}}<|eom_id|>'],
    ['Llama 3 with a function tag', '<function=add>{"a": 42, "b": 58}</function>'],
    [
      'Qwen3-Coder',
      '<tool_call>\n<function=add>\n<parameter=a>\n42\n</parameter>\n<parameter=b>\n58\n</parameter>\n</function>\n</tool_call>',
    ],
    [
      'a function tag with attributes',
      '<function name="add"><parameter name="a">42</parameter><parameter name="b">58</parameter></function>',
    ],
    [
      'GLM',
      '<tool_call>add\n<arg_key>a</arg_key>\n<arg_value>42</arg_value>\n<arg_key>b</arg_key>\n<arg_value>58</arg_value>\n</tool_call>',
    ],
    ['Mistral', `[TOOL_CALLS] [${ADD}]`],
    ['Mistral v11', '[TOOL_CALLS]add[CALL_ID]c1[ARGS]{"a": 42, "b": 58}'],
    [
      'DeepSeek V3',
      '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{"a": 42, "b": 58}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    ],
    [
      'DeepSeek V3.1',
      '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>add<｜tool▁sep｜>{"a": 42, "b": 58}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    ],
    [
      'Kimi',
      '<|tool_calls_section_begin|><|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{"a": 42, "b": 58}<|tool_call_end|><|tool_calls_section_end|>',
    ],
    [
      'gpt-oss',
      '<|channel|>commentary to=functions.add <|constrain|>json<|message|>{"a": 42, "b": 58}<|call|>',
    ],
    [
      'Command R7B',
      '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "add", "parameters": {"a": 42, "b": 58}}]<|END_ACTION|>',
    ],
    ['a list in Python', '[add(a=42, b=58)]'],
    ['Llama 4', '<|python_start|>[add(a=42, b=58)]<|python_end|>'],
    ['Gemma', '```tool_code\nprint(default_api.add(a=42, b=58))\n```'],
  ])('%s', (_, text) => {
    const { toolCalls, textBefore } = new ToolCallParser({ tools: TOOLS }).parse(`Well. ${text}`);
    expect(toolCalls.map((call) => [call.name, call.arguments])).toEqual([ADDED]);
    expect(['Well. ', 'Well. <|channel|>commentary ']).toContain(textBefore);
  });

  test('several calls after one mark, with separators, are found', () => {
    expect(calls(`<|python_tag|>${ADD};${ADD}`)).toEqual([ADDED, ADDED]);
    expect(calls(`<tool_call>${ADD}\n${ADD}</tool_call>`)).toEqual([ADDED, ADDED]);
    expect(calls(`[TOOL_CALLS]add{"a": 42, "b": 58}[TOOL_CALLS]add{"a": 42, "b": 58}`)).toEqual([
      ADDED,
      ADDED,
    ]);
  });

  test('inside marks, a call may have no arguments', () => {
    expect(calls('<tool_call>{"name": "add"}</tool_call>')).toEqual([['add', {}]]);
    expect(calls('<tool_call>add</tool_call>')).toEqual([['add', {}]]);
  });

  test('a closing tag inside a string does not end the call', () => {
    const text = '<tool_call>{"name":"add","arguments":{"a":"</tool_call> <tool_call>"}}</tool_call>';
    expect(calls(text)).toEqual([['add', { a: '</tool_call> <tool_call>' }]]);
  });

  test('inside marks, relaxed JSON is a call with raw text as arguments, to be repaired later', () => {
    expect(calls("<tool_call>{name: 'add', arguments: {a: 1, /* two */ b: 'x\ny',}}</tool_call>")).toEqual([
      ['add', "{a: 1, /* two */ b: 'x\ny',}"],
    ]);
    expect(calls('<tool_call>{name: "add", arguments: {"a": 1}}</tool_call>')).toEqual([['add', { a: 1 }]]);
    expect(calls('[TOOL_CALLS]add{"a": 1,}')).toEqual([['add', '{"a": 1,}']]);
  });

  test('Python literals, quotes, tuples and escapes are parsed', () => {
    const text = `[add(a=True, b=None, c=(1, -2.5e3), d={'k': ["it's", 'a\\'b']}, e="\\u00e9\\n")]`;
    expect(calls(text)).toEqual([
      ['add', { a: true, b: null, c: [1, -2500], d: { k: ["it's", "a'b"] }, e: 'é\n' }],
    ]);
  });

  test.each([
    '[add(1, 2)]',
    '[add(a=1]',
    '[add(a=b)]',
    '[add(a=1 b=2)]',
    '[add(a=4.2.3)]',
    '[unknown(a=1)]',
    '[TOOL_CALLS]add[ARGS]later',
    '<|channel|>commentary to=functions.add <|constrain|>code<|message|>print(1)',
    '<｜tool▁call▁begin｜>add<｜tool▁sep｜>{invalid json}<｜tool▁call▁end｜>',
    '<tool_call>{"name":"add","arguments":{"v":4.2.3}}</tool_call>',
    '<tool_call><function=add>text</function></tool_call>',
  ])('%s does not contain a call', (text) => {
    expect(calls(text)).toEqual([]);
  });
});

describe('types of arguments in tags', () => {
  const text = [
    '<tool_call><function=add>',
    '<parameter=code>42</parameter><parameter=count>42</parameter><parameter=on>True</parameter>',
    '<parameter=when>07:30</parameter><parameter=list>["a"]</parameter><parameter=none>null</parameter>',
    '</function></tool_call>',
  ].join('');

  test('the schema of the tool decides between text and other types', () => {
    const parameters = {
      type: 'object',
      properties: {
        code: { type: 'string' },
        count: { type: 'integer' },
        on: { type: ['boolean', 'null'] },
        when: { enum: ['07:30', '19:30'] },
        list: { anyOf: [{ type: 'string' }, { type: 'array' }] },
        none: { const: 'null' },
      },
    };
    const expected = { code: '42', count: 42, on: true, when: '07:30', list: ['a'], none: 'null' };
    for (const tool of [{ name: 'add', parameters }, { function: { name: 'add', parameters } }]) {
      expect(new ToolCallParser({ tools: [tool] }).parse(text).toolCall?.arguments).toEqual(expected);
    }
    const registry = { list: () => ['add'], get: () => ({ parameters }) };
    expect(new ToolCallParser({ tools: registry }).parse(text).toolCall?.arguments).toEqual(expected);
  });

  test('without a schema, a value that looks like a literal is parsed', () => {
    expect(calls(text)).toEqual([
      ['add', { code: 42, count: 42, on: true, when: '07:30', list: ['a'], none: null }],
    ]);
  });

  test('one line break on either side is removed, and other white space is preserved', () => {
    expect(calls('<function=add><parameter=a>\n\n x \n</parameter></function>')).toEqual([
      ['add', { a: '\n x ' }],
    ]);
  });
});

describe('ids and tools', () => {
  test('the id of the model is used; a missing or repeated one is replaced by the next free number', () => {
    const call = (id: string) => `{"name":"add","arguments":{}${id && `,"id":"${id}"`}}`;
    const { toolCalls } = new ToolCallParser().parse(['', 'call_1', 'x', 'x', ''].map(call).join('\n'));
    expect(toolCalls.map(({ id }) => id)).toEqual(['call_2', 'call_1', 'x', 'call_3', 'call_4']);
  });

  test('a registry is queried again for each text', () => {
    const names: string[] = [];
    const parser = new ToolCallParser({ tools: { list: () => names } });
    expect(parser.parse(ADD).toolCalls).toEqual([]);
    names.push('add');
    expect(parser.parse(ADD).toolCalls).toHaveLength(1);
  });

  test('names with dots, and names with the same prefix, are distinguished', () => {
    expect(calls('[TOOL_CALLS]shop.find{"q":1}')).toEqual([['shop.find', { q: 1 }]]);
    expect(calls('{"name":"ad","arguments":{}}{"name":"adds","arguments":{}}')).toEqual([]);
  });
});
