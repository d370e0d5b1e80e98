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
  test('an object with name and arguments is a call, with the text before it untrimmed', () => {
    expect(new ToolCallParser({ tools: TOOLS }).parse(`Let me see.  ${ADD} There.`)).toEqual({
      toolCall: { id: 'call_1', name: 'add', arguments: { a: 42, b: 58 } },
      toolCalls: [{ id: 'call_1', name: 'add', arguments: { a: 42, b: 58 } }],
      textBefore: 'Let me see.  ',
    });
  });

  test('a text without a call is all text before', () => {
    expect(new ToolCallParser().parse(' Hello {you}. ')).toEqual({
      toolCall: undefined,
      toolCalls: [],
      textBefore: ' Hello {you}. ',
    });
  });

  test('the first of several calls is the tool call, and all are found in order', () => {
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
    ['after an object that is broken', `{"name": {${ADD}`],
    ['after a quote that is never closed', `{"oops: "x <tool_call>${ADD}</tool_call>`],
  ])('a call is found %s', (_, text) => {
    expect(calls(text)).toEqual([ADDED]);
  });

  test('arguments that are not an object go on as text, for the read step to refuse', () => {
    expect(calls('{"name":"add","arguments":"later"}')).toEqual([['add', 'later']]);
    expect(calls('{"name":"add","arguments":[1]}')).toEqual([['add', '[1]']]);
  });

  test('null as arguments means no arguments', () => {
    expect(calls('{"name":"add","arguments":null}')).toEqual([['add', {}]]);
  });

  test('keys such as __proto__ are data, and no name is looked up in a prototype', () => {
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
    ['a call within the data of another object', `{"example": ${ADD}}`],
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
    ['what the model only thinks about', `<think>Perhaps <tool_call>${ADD}</tool_call>?</think>No.`],
    ['thinking that never ends', `<think>Perhaps <tool_call>${ADD}</tool_call>`],
    ['relaxed JSON outside of marks', "{'name': 'add', 'arguments': {}}"],
  ])('%s is not a call', (_, text) => {
    expect(calls(text)).toEqual([]);
  });

  test('without tools a list in brackets counts only at the beginning of the message', () => {
    const parser = new ToolCallParser();
    expect(parser.parse('Also has [function()] syntax.').toolCalls).toEqual([]);
    expect(parser.parse('[function()]').toolCalls).toHaveLength(1);
  });

  test('with an empty list of tools nothing is a call', () => {
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

  test('several calls behind one mark, with separators', () => {
    expect(calls(`<|python_tag|>${ADD};${ADD}`)).toEqual([ADDED, ADDED]);
    expect(calls(`<tool_call>${ADD}\n${ADD}</tool_call>`)).toEqual([ADDED, ADDED]);
    expect(calls(`[TOOL_CALLS]add{"a": 42, "b": 58}[TOOL_CALLS]add{"a": 42, "b": 58}`)).toEqual([
      ADDED,
      ADDED,
    ]);
  });

  test('between marks the arguments may be left out', () => {
    expect(calls('<tool_call>{"name": "add"}</tool_call>')).toEqual([['add', {}]]);
    expect(calls('<tool_call>add</tool_call>')).toEqual([['add', {}]]);
  });

  test('a closing tag within a text value closes nothing', () => {
    const text = '<tool_call>{"name":"add","arguments":{"a":"</tool_call> <tool_call>"}}</tool_call>';
    expect(calls(text)).toEqual([['add', { a: '</tool_call> <tool_call>' }]]);
  });

  test('between marks relaxed JSON is a call whose arguments go on as raw text, to be repaired and recorded', () => {
    expect(calls("<tool_call>{name: 'add', arguments: {a: 1, /* two */ b: 'x\ny',}}</tool_call>")).toEqual([
      ['add', "{a: 1, /* two */ b: 'x\ny',}"],
    ]);
    expect(calls('<tool_call>{name: "add", arguments: {"a": 1}}</tool_call>')).toEqual([['add', { a: 1 }]]);
    expect(calls('[TOOL_CALLS]add{"a": 1,}')).toEqual([['add', '{"a": 1,}']]);
  });

  test("Python's literals, quotes, tuples and escapes are read", () => {
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
  ])('%s is not a call', (text) => {
    expect(calls(text)).toEqual([]);
  });
});

describe('types of values that come as text', () => {
  const text = [
    '<tool_call><function=add>',
    '<parameter=code>42</parameter><parameter=count>42</parameter><parameter=on>True</parameter>',
    '<parameter=when>07:30</parameter><parameter=list>["a"]</parameter><parameter=none>null</parameter>',
    '</function></tool_call>',
  ].join('');

  test('the schema of a tool tells text from numbers', () => {
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

  test('without a schema what reads as a literal is one', () => {
    expect(calls(text)).toEqual([
      ['add', { code: 42, count: 42, on: true, when: '07:30', list: ['a'], none: null }],
    ]);
  });

  test('one line break on either side is the format’s, further white space the value’s', () => {
    expect(calls('<function=add><parameter=a>\n\n x \n</parameter></function>')).toEqual([
      ['add', { a: '\n x ' }],
    ]);
  });
});

describe('ids and tools', () => {
  test('the id that the model wrote is kept; a second one alike, or none, gets the next free number', () => {
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
