import { expect, test } from '@jest/globals';
import { type LLMProvider, ToolCallParser, type ToolSchema, withTextTools } from 'toolwright';
import { CALL_FORMATS } from './text-call-formats.js';

const WEATHER: ToolSchema = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'Weather of a place',
    parameters: {
      type: 'object',
      properties: {
        city: { type: 'string' },
        state: { type: 'string' },
        days: { type: 'integer' },
        exact: { type: 'boolean' },
        tags: { type: 'array', items: { type: 'string' } },
        place: { type: 'object' },
      },
    },
  },
};
const TIME: ToolSchema = {
  type: 'function',
  function: {
    name: 'get_time',
    description: 'Time of a zone',
    parameters: { type: 'object', properties: { zone: { type: 'string' } } },
  },
};

/** The calls in a text, the same whole and streamed, and the remaining text. */
async function read(content: string) {
  const response = { content, toolCalls: [], finishReason: 'stop' } as const;
  const provider: LLMProvider = {
    chat: async () => response,
    async *stream() {
      for (const text of content) yield { type: 'text-delta', text } as const;
      yield { type: 'response', response } as const;
    },
  };
  const request = { model: 'm', messages: [], tools: [WEATHER, TIME], options: {} };
  const wrapped = withTextTools(provider);
  const whole = await wrapped.chat(request);
  for await (const part of wrapped.stream!(request))
    if (part.type === 'response') expect(part.response).toEqual(whole);
  const { toolCalls } = new ToolCallParser({ tools: [WEATHER, TIME] }).parse(content);
  expect(toolCalls).toEqual(whole.toolCalls);
  return { calls: toolCalls.map(({ name, arguments: args }) => [name, args]), text: whole.content };
}

test('ToolCallParser reads a call in the format of each model family and removes it from the text', async () => {
  for (const [family, write] of Object.entries(CALL_FORMATS)) {
    const args = { city: 'Paris, "TX"', state: '<a> & {b}' };
    const { calls, text } = await read(`Let me see.\n${write('get_weather', args)}`);
    expect([family, calls]).toEqual([family, [['get_weather', args]]]);
    expect(text.replace('<|channel|>commentary', '').trim()).toBe('Let me see.');
  }
});

const TYPED = { city: 'Paris', days: 2, exact: true, tags: ['a', 'b'], place: { lat: 1.5 } };
const values = (open: (key: string, isText: boolean) => string, close: string) =>
  Object.entries(TYPED)
    .map(([key, value]) => {
      const isText = typeof value === 'string';
      return `${open(key, isText)}${isText ? value : JSON.stringify(value)}${close}\n`;
    })
    .join('');

test.each([
  [
    'MiniMax M2',
    `<minimax:tool_call>\n<invoke name="get_weather">\n${values((key) => `<parameter name="${key}">`, '</parameter>')}</invoke>\n</minimax:tool_call>`,
  ],
  [
    'DeepSeek V3.2',
    `<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n${values((key, isText) => `<｜DSML｜parameter name="${key}" string="${isText}">`, '</｜DSML｜parameter>')}</｜DSML｜invoke>\n</｜DSML｜function_calls>`,
  ],
  [
    'Step 3',
    `<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather">${values((key) => `<steptml:parameter name="${key}">`, '</steptml:parameter>')}</steptml:invoke><｜tool_call_end｜>\n<｜tool_calls_end｜>`,
  ],
  [
    'Gemma 4',
    '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:2,exact:true,place:{lat:1.5},tags:[<|"|>a<|"|>,<|"|>b<|"|>]}<tool_call|>',
  ],
  [
    'FunctionGemma',
    '<start_function_call>call:get_weather{city:<escape>Paris<escape>,days:2,exact:true,place:{lat:1.5},tags:[<escape>a<escape>,<escape>b<escape>]}<end_function_call>',
  ],
  ['Apertus', `<|tools_prefix|>[{"get_weather": ${JSON.stringify(TYPED)}}]<|tools_suffix|>`],
  [
    'OLMo 3',
    `<function_calls>get_weather(city='Paris', days=2, exact=True, tags=['a', 'b'], place={'lat': 1.5})</function_calls>`,
  ],
  [
    'Hunyuan A13B',
    `<tool_calls>[{"name": "get_weather", "arguments": ${JSON.stringify(TYPED)}}]</tool_calls>`,
  ],
  [
    'Hunyuan 3',
    `<tool_calls>\n<tool_call>get_weather<tool_sep>\n${values((key) => `<arg_key>${key}</arg_key>\n<arg_value>`, '</arg_value>')}</tool_call>\n</tool_calls>`,
  ],
])('ToolCallParser reads values of all types in the format of %s', async (_, text) => {
  expect(await read(text)).toEqual({ calls: [['get_weather', TYPED]], text: '' });
});

test.each([
  [
    'MiniMax M2',
    '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n</invoke>\n<invoke name="get_time">\n<parameter name="zone">CET</parameter>\n</invoke>\n</minimax:tool_call>',
  ],
  [
    'DeepSeek V4',
    '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name="get_time">\n<｜DSML｜parameter name="zone" string="true">CET</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
  ],
  [
    'Step 3',
    '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather"><steptml:parameter name="city">Oslo</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_sep｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_time"><steptml:parameter name="zone">CET</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>',
  ],
  [
    'Gemma 4',
    '<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>}<tool_call|><|tool_call>call:get_time{zone:<|"|>CET<|"|>}<tool_call|>',
  ],
  [
    'Apertus',
    '<|tools_prefix|>[{"get_weather": {"city": "Oslo"}}, {"get_time": {"zone": "CET"}}]<|tools_suffix|>',
  ],
  ['OLMo 3', "<function_calls>get_weather(city='Oslo')\nget_time(zone='CET')</function_calls>"],
  [
    'Hunyuan 3',
    '<tool_calls>\n<tool_call>get_weather<tool_sep>\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>\n<tool_call>get_time<tool_sep>\n<arg_key>zone</arg_key>\n<arg_value>CET</arg_value>\n</tool_call>\n</tool_calls>',
  ],
  [
    'Hunyuan A13B, after its reasoning',
    '<think>\nTwo.\n</think>\n<answer>\n<tool_calls>[{"name": "get_weather", "arguments": {"city": "Oslo"}}, {"name": "get_time", "arguments": {"zone": "CET"}}]</tool_calls>',
  ],
])('ToolCallParser reads several calls of one reply of %s', async (_, content) => {
  const { calls, text } = await read(content);
  expect(calls).toEqual([
    ['get_weather', { city: 'Oslo' }],
    ['get_time', { zone: 'CET' }],
  ]);
  expect(text.replace(/<think>.*<\/think>\n<answer>/s, '')).toBe('');
});

test.each([
  [
    '<tool_call>\n<function=get_weather>\n<parameter=city>Dallas\n<parameter=state>TX</parameter>\n</function>\n</tool_call>',
  ],
  ['<function=get_weather><parameter=city>Dallas<parameter=state>TX</parameter></function>'],
  ['<tool_call><function=get_weather><parameter=city>Dallas<parameter=state>TX</function></tool_call>'],
  ['<function=get_weather><parameter name="city">Dallas<parameter name="state">TX</parameter></function>'],
  ['<invoke name="get_weather"><parameter name="city">Dallas<parameter name="state">TX</parameter></invoke>'],
  [
    '<minimax:tool_call><invoke name="get_weather"><parameter name="city">Dallas<parameter name="state">TX</invoke></minimax:tool_call>',
  ],
  [
    '<tool_call>get_weather<arg_key>city</arg_key><arg_value>Dallas<arg_key>state</arg_key><arg_value>TX</arg_value></tool_call>',
  ],
])('ToolCallParser ends an unclosed value at the next tag: %s', async (text) => {
  expect(await read(text)).toEqual({ calls: [['get_weather', { city: 'Dallas', state: 'TX' }]], text: '' });
});

test('ToolCallParser keeps tags inside a value if the tool has no such parameter', async () => {
  const value = 'Use <parameter=x>1</function> or <tool_call> here';
  const text = `<tool_call><function=get_weather><parameter=city>${value}</parameter></function></tool_call>`;
  expect((await read(text)).calls).toEqual([['get_weather', { city: value }]]);
});

test.each([
  '<minimax:tool_call><invoke name="get_weather"><parameter name="city">Oslo',
  '<minimax:tool_call><invoke name="get_weather"><parameter name="city">Oslo</parameter>',
  '<｜DSML｜tool_calls><｜DSML｜invoke name="get_weather"><｜DSML｜parameter name="city" string="true">Oslo',
  '<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>',
  '<|tool_call>call:get_weather{days:2',
  '<|tools_prefix|>[{"get_weather": {"city": "Oslo"}}',
  "<function_calls>get_weather(city='Oslo'",
  '<tool_calls><tool_call>get_weather<tool_sep><arg_key>city</arg_key><arg_value>Oslo',
  'call:get_weather{city:Oslo}',
  '<invoke name="get_weather">Oslo</invoke>',
  '<|tools_prefix|>["get_weather"]<|tools_suffix|>',
])('ToolCallParser treats incomplete calls and other text as text: %s', async (text) => {
  expect(await read(text)).toEqual({ calls: [], text });
});
