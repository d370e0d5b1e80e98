import fc from 'fast-check';

/** The tools that the generated texts call. */
export const NAMES = ['add', 'get_weather', 'shop.find'];

const name = fc.constantFrom(...NAMES, 'unknown');
const key = fc.constantFrom('a', 'b', '__proto__', 'name', 'arguments');
const value = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom('</tool_call>', '</parameter>', '{"name":"add","arguments":{}}', '```', '[add()]', '𝒳'),
);
const args = fc.dictionary(key, value, { maxKeys: 3 });
const json = fc
  .tuple(name, args)
  .map(([called, given]) => JSON.stringify({ name: called, arguments: given }));

const call = fc.oneof(
  json,
  json.map((text) => `<tool_call>\n${text}\n</tool_call>`),
  json.map((text) => `\`\`\`json\n${text}\n\`\`\``),
  fc.array(json, { maxLength: 3 }).map((texts) => `[TOOL_CALLS] [${texts.join(', ')}]`),
  fc.array(json, { maxLength: 3 }).map((texts) => `<|python_tag|>${texts.join(';')}`),
  fc.tuple(name, args).map(([called, given]) => `[TOOL_CALLS]${called}[ARGS]${JSON.stringify(given)}`),
  fc.tuple(name, args).map(([called, given]) => {
    const parameters = Object.entries(given).map(
      ([k, v]) => `<parameter=${k}>\n${JSON.stringify(v)}\n</parameter>`,
    );
    return `<tool_call>\n<function=${called}>\n${parameters.join('\n')}\n</function>\n</tool_call>`;
  }),
  fc.tuple(name, args).map(([called, given]) => {
    const pairs = Object.entries(given).map(([k, v]) => `<arg_key>${k}</arg_key><arg_value>${v}</arg_value>`);
    return `<tool_call>${called}${pairs.join('')}</tool_call>`;
  }),
  fc.tuple(name, args).map(([called, given]) => {
    const keywords = Object.entries(given).map(([k, v]) => `${k}=${JSON.stringify(v)}`);
    return `[${called}(${keywords.join(', ')})]`;
  }),
  name.map((called) => `<tool_call>{name: '${called}', arguments: {x: 'a\nb', /* c */}, // d\n}</tool_call>`),
  name.map(
    (called) =>
      `<｜tool▁call▁begin｜>function<｜tool▁sep｜>${called}\n\`\`\`json\n{"a": 1}\n\`\`\`<｜tool▁call▁end｜>`,
  ),
  name.map(
    (called) => `<|tool_call_begin|>functions.${called}:0<|tool_call_argument_begin|>{}<|tool_call_end|>`,
  ),
  name.map(
    (called) => `<|channel|>commentary to=functions.${called} <|constrain|>json<|message|>{"a": 1}<|call|>`,
  ),
  fc.tuple(name, args).map(([called, given]) => {
    const parameters = Object.entries(given).map(([k, v]) => `<parameter name="${k}">${v}</parameter>`);
    return `<minimax:tool_call>\n<invoke name="${called}">${parameters.join('\n')}</invoke>\n</minimax:tool_call>`;
  }),
  name.map(
    (called) =>
      `<｜DSML｜tool_calls>\n<｜DSML｜invoke name="${called}">\n<｜DSML｜parameter name="a" string="false">1</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>`,
  ),
  name.map((called) => `<|tool_call>call:${called}{a:<|"|>x, y<|"|>,b:[1,{c:true}]}<tool_call|>`),
  name.map((called) => `<|tools_prefix|>[{"${called}": {"a": 1}}]<|tools_suffix|>`),
  name.map((called) => `<function_calls>${called}(a=1)\n${called}(b='x')</function_calls>`),
  name.map(
    (called) =>
      `<tool_calls>\n<tool_call>${called}<tool_sep>\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>\n</tool_calls>`,
  ),
  name.map((called) => `\`\`\`tool_code\nprint(${called}(a=1))\n\`\`\``),
  fc.tuple(name, args).map(([called, given]) => `>>>${called}\n${JSON.stringify(given)}`),
  fc.tuple(name, args).map(([called, given]) => `${called}\n${JSON.stringify(given)}`),
);

const scrap = fc.constantFrom(
  ...[
    '<think>',
    '</think>',
    '<tool_call>',
    '</tool_call>',
    '<function=add>',
    '<parameter=a>',
    '<invoke name="add">',
    '</invoke>',
    'call:add{',
    '<|"|>',
    '<|channel|>analysis<|message|>',
    '<|end|>',
    '[THINK]',
    '[/THINK]',
    '</tool_calls>',
    '</parameter>',
  ],
  ...[
    '[TOOL_CALLS]',
    '[ARGS]',
    '{',
    '}',
    '[',
    ']',
    '"',
    "'",
    '\\',
    ':',
    ',',
    '{"',
    '```',
    '```json',
    '<|',
    '/*',
  ],
  ...[
    'add',
    'add(',
    '(a=1)',
    'to=functions.',
    '>>>',
    'add\n{',
    '[add(',
    ')]',
    '<arg_key>',
    ' ',
    '\n',
    '{"name":"add",',
    '"arguments":{}',
    '𝒳',
    'é',
  ],
);

/** Random output of a model: prose, calls in all formats, and fragments of them, in any order. */
export const modelText = fc
  .array(fc.oneof({ weight: 2, arbitrary: call }, { weight: 3, arbitrary: scrap }, fc.string()), {
    maxLength: 6,
  })
  .map((parts) => parts.join(''));
