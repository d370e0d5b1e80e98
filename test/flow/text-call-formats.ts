type Args = Readonly<Record<string, string>>;

const json = (name: string, args: Args) => JSON.stringify({ name, arguments: args });

function pairs(args: Args, write: (key: string, value: string) => string): string {
  return Object.entries(args)
    .map(([key, value]) => write(key, value))
    .join('');
}

function python(name: string, args: Args): string {
  const given = Object.entries(args).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  return `${name}(${given.join(', ')})`;
}

/** How model families write a call, as in their chat templates. */
export const CALL_FORMATS: Readonly<Record<string, (name: string, args: Args) => string>> = {
  'bare JSON': json,
  'fenced JSON': (name, args) => `\`\`\`json\n${json(name, args)}\n\`\`\``,
  Hermes: (name, args) => `<tool_call>\n${json(name, args)}\n</tool_call>`,
  'Granite 3': (name, args) => `<|tool_call|>[${json(name, args)}]`,
  'Llama 3': (name, args) => `<|python_tag|>${JSON.stringify({ name, parameters: args })}<|eom_id|>`,
  'Llama 4': (name, args) => `<|python_start|>[${python(name, args)}]<|python_end|>`,
  Mistral: (name, args) => `[TOOL_CALLS] [${json(name, args)}]`,
  'Mistral 11': (name, args) => `[TOOL_CALLS]${name}[ARGS]${JSON.stringify(args)}`,
  'Qwen3 Coder': (name, args) =>
    `<tool_call>\n<function=${name}>\n${pairs(args, (key, value) => `<parameter=${key}>\n${value}\n</parameter>\n`)}</function>\n</tool_call>`,
  'Seed OSS': (name, args) =>
    `<seed:tool_call>\n<function=${name}>\n${pairs(args, (key, value) => `<parameter=${key}>${value}</parameter>\n`)}</function>\n</seed:tool_call>`,
  GLM: (name, args) =>
    `<tool_call>${name}\n${pairs(args, (key, value) => `<arg_key>${key}</arg_key>\n<arg_value>${value}</arg_value>\n`)}</tool_call>`,
  'Hunyuan A13B': (name, args) => `<tool_calls>[${json(name, args)}]</tool_calls>`,
  'Hunyuan 3': (name, args) =>
    `<tool_calls>\n<tool_call>${name}<tool_sep>\n${pairs(args, (key, value) => `<arg_key>${key}</arg_key>\n<arg_value>${value}</arg_value>\n`)}</tool_call>\n</tool_calls>`,
  'Hunyuan 4': (name, args) =>
    `<tool_calls:opensource><tool_call:opensource>${name}${pairs(args, (key, value) => `<arg_key:opensource>${key}</arg_key:opensource><arg_value:opensource>${value}</arg_value:opensource>`)}</tool_call:opensource></tool_calls:opensource>`,
  'Hunyuan 7B': (name, args) =>
    `<tool_calls><tool_call>function<tool_sep>${name}\n\`\`\`json\n${JSON.stringify(args)}\n\`\`\`</tool_call></tool_calls>`,
  'DeepSeek V3': (name, args) =>
    `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>${name}\n\`\`\`json\n${JSON.stringify(args)}\n\`\`\`<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
  'DeepSeek V3.1': (name, args) =>
    `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>${name}<｜tool▁sep｜>${JSON.stringify(args)}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
  'DeepSeek V3.2': (name, args) => dsml('function_calls', name, args),
  'DeepSeek V4': (name, args) => dsml('tool_calls', name, args),
  'MiniMax M2': (name, args) =>
    `<minimax:tool_call>\n<invoke name="${name}">\n${pairs(args, (key, value) => `<parameter name="${key}">${value}</parameter>\n`)}</invoke>\n</minimax:tool_call>`,
  'Step 3': (name, args) =>
    `<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="${name}">\n${pairs(args, (key, value) => `<steptml:parameter name="${key}">${value}</steptml:parameter>\n`)}</steptml:invoke><｜tool_call_end｜>\n<｜tool_calls_end｜>`,
  'Kimi K2': (name, args) =>
    `<|tool_calls_section_begin|><|tool_call_begin|>functions.${name}:0<|tool_call_argument_begin|>${JSON.stringify(args)}<|tool_call_end|><|tool_calls_section_end|>`,
  'gpt-oss': (name, args) =>
    `<|channel|>commentary to=functions.${name} <|constrain|>json<|message|>${JSON.stringify(args)}<|call|>`,
  'Command R7B': (name, args) =>
    `<|START_ACTION|>[${JSON.stringify({ tool_call_id: '0', tool_name: name, parameters: args })}]<|END_ACTION|>`,
  'Gemma 3': (name, args) => `\`\`\`tool_code\nprint(default_api.${python(name, args)})\n\`\`\``,
  'Gemma 4': (name, args) => `<|tool_call>call:${name}{${gemma(args, '<|"|>')}}<tool_call|>`,
  FunctionGemma: (name, args) =>
    `<start_function_call>call:${name}{${gemma(args, '<escape>')}}<end_function_call>`,
  Apertus: (name, args) => `<|tools_prefix|>[${JSON.stringify({ [name]: args })}]<|tools_suffix|>`,
  'OLMo 3': (name, args) => `<function_calls>${python(name, args)}</function_calls>`,
  'Python list': (name, args) => `[${python(name, args)}]`,
  'Functionary 3.2': (name, args) => `>>>${name}\n${JSON.stringify(args)}`,
};

function dsml(block: string, name: string, args: Args): string {
  const parameters = pairs(
    args,
    (key, value) => `<｜DSML｜parameter name="${key}" string="true">${value}</｜DSML｜parameter>\n`,
  );
  return `<｜DSML｜${block}>\n<｜DSML｜invoke name="${name}">\n${parameters}</｜DSML｜invoke>\n</｜DSML｜${block}>`;
}

function gemma(args: Args, quote: string): string {
  return Object.entries(args)
    .map(([key, value]) => `${key}:${quote}${value}${quote}`)
    .join(',');
}

/** The opening and closing marks of reasoning in the output of models. */
export const REASONING: readonly (readonly [string, string])[] = [
  ['<think>', '</think>'],
  ['<THINK>', '</THINK>'],
  ['<Thinking>', '</Thinking>'],
  ['<thinking>', '</thinking>'],
  ['<thought>', '</thought>'],
  ['<reasoning>', '</reasoning>'],
  ['<seed:think>', '</seed:think>'],
  ['<think:opensource>', '</think:opensource>'],
  ['<longcat_think>', '</longcat_think>'],
  ['[THINK]', '[/THINK]'],
  ['◁think▷', '◁/think▷'],
  ['<|open|>think<|sep|>', '<|close|>think<|sep|>'],
  ['<|START_THINKING|>', '<|END_THINKING|>'],
  ['<|inner_prefix|>', '<|inner_suffix|>'],
  ['<|begin_of_thought|>', '<|end_of_thought|>'],
  ['<|channel>thought\n', '<channel|>'],
  ['<|channel|>analysis<|message|>', '<|end|><|start|>assistant'],
  ['Here is my thought process:', 'Here is my response:'],
];
