// The tools that the official suite requires from a server. The suite defines their names, texts and schemas. They use
// MCP directly only for features that other surfaces do not have: sampling, roots and closed streams.
import { setTimeout as wait } from 'node:timers/promises';
import { defineTool } from '../../dist/src/index.js';
import { listRoots, sampleMessage } from '../../dist/src/surfaces/mcp/index.js';

const RED_DOT =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const SILENCE = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';
const base64 = (text) => Buffer.from(text).toString('base64');
const text = (content) => ({ type: 'text', content });
const image = { type: 'image', data: RED_DOT, mimeType: 'image/png' };
const object = (properties, required = Object.keys(properties)) => ({ type: 'object', properties, required });
const string = { type: 'string' };
const option = (value, title) => ({ const: value, title });

const ENUMS = object(
  {
    untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
    titledSingle: {
      type: 'string',
      oneOf: [
        option('value1', 'First Option'),
        option('value2', 'Second Option'),
        option('value3', 'Third Option'),
      ],
    },
    legacyEnum: {
      type: 'string',
      enum: ['opt1', 'opt2', 'opt3'],
      enumNames: ['Option One', 'Option Two', 'Option Three'],
    },
    untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
    titledMulti: {
      type: 'array',
      items: {
        anyOf: [
          option('value1', 'First Choice'),
          option('value2', 'Second Choice'),
          option('value3', 'Third Choice'),
        ],
      },
    },
  },
  [],
);

const DEFAULTS = object(
  {
    name: { type: 'string', description: 'User name', default: 'John Doe' },
    age: { type: 'integer', description: 'User age', default: 30 },
    score: { type: 'number', description: 'User score', default: 95.5 },
    status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', description: 'Verification status', default: true },
  },
  [],
);

const JSON_SCHEMA_2020_12 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: { address: { $anchor: 'addressDef', ...object({ street: string, city: string }) } },
  properties: {
    name: string,
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: string,
    email: string,
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};

const NAME = {
  message: 'What is your name?',
  schema: { ...object({ name: string }), title: 'user_name' },
};
const prompt = (text, maxTokens = 100) => ({
  messages: [{ role: 'user', content: { type: 'text', text } }],
  maxTokens,
});

/** A tool that asks questions in order and returns the answers. */
const askingTool = (name, ...questions) => ({
  name,
  description: 'Asks the user',
  async execute(_args, context) {
    const answers = [];
    for (const question of questions) answers.push(await context.ask(question));
    return `Answered: ${JSON.stringify(answers)}`;
  },
});

const ELICITATION_TOOLS = [
  askingTool('test_elicitation_sep1034_defaults', { message: 'Please check your details', schema: DEFAULTS }),
  askingTool('test_elicitation_sep1330_enums', { message: 'Please choose', schema: ENUMS }),
  askingTool('test_input_required_result_elicitation', NAME),
  askingTool('test_input_required_result_request_state', {
    message: 'Please confirm',
    schema: object({ ok: { type: 'boolean' } }),
  }),
  askingTool('test_input_required_result_tampered_state', {
    message: 'Please confirm',
    schema: object({ ok: { type: 'boolean' } }),
  }),
  askingTool(
    'test_input_required_result_multi_round',
    { message: 'Step 1: What is your name?', schema: object({ name: string }) },
    { message: 'Step 2: What is your favourite colour?', schema: object({ color: string }) },
  ),
  askingTool('test_streaming_elicitation', {
    message: 'What is your name?',
    schema: object({ name: string }),
  }),
  {
    name: 'test_elicitation',
    description: 'Asks the user for name and address',
    parameters: object({ message: string }),
    async execute({ message }, context) {
      const schema = object({
        username: { type: 'string', description: "User's response" },
        email: { type: 'string', description: "User's email address" },
      });
      return `User response: ${JSON.stringify(await context.ask({ message, schema }))}`;
    },
  },
];

const RESULT_TOOLS = [
  {
    name: 'test_simple_text',
    description: 'Returns a text',
    execute: () => 'This is a simple text response for testing.',
  },
  { name: 'test_image_content', description: 'Shows an image', execute: () => ({ content: [image] }) },
  {
    name: 'test_audio_content',
    description: 'Plays a sound',
    execute: () => ({
      content: [{ type: 'file', data: SILENCE, mimeType: 'audio/wav', filename: 'silence.wav' }],
    }),
  },
  {
    name: 'test_embedded_resource',
    description: 'Embeds a resource',
    execute: () => ({
      content: [
        {
          type: 'file',
          data: base64('This is an embedded resource content.'),
          mimeType: 'text/plain',
          filename: 'test://embedded-resource',
        },
      ],
    }),
  },
  {
    name: 'test_multiple_content_types',
    description: 'Returns a text, an image and a resource',
    execute: () => ({
      content: [
        text('Multiple content types test:'),
        image,
        {
          type: 'file',
          data: base64('{"test":"data","value":123}'),
          mimeType: 'application/json',
          filename: 'test://mixed-content-resource',
        },
      ],
    }),
  },
  {
    name: 'test_error_handling',
    description: 'Always fails',
    execute() {
      throw new Error('This tool intentionally returns an error for testing');
    },
  },
  {
    name: 'json_schema_2020_12_tool',
    description: 'Tool with JSON Schema 2020-12 features',
    parameters: JSON_SCHEMA_2020_12,
    execute: (args) => `Called with ${JSON.stringify(args)}`,
  },
  {
    name: 'test_custom_headers',
    description: 'Takes a parameter that is mirrored in a header',
    parameters: object({ region: { type: 'string', 'x-mcp-header': 'Region' } }),
    execute: ({ region }) => `Region ${region}`,
  },
];

const LOGGING_TOOLS = ['test_tool_with_logging', 'test_logging_tool'].map((name) => ({
  name,
  description: 'Logs while it runs',
  async execute(_args, { logger }) {
    logger.info('Tool execution started');
    await wait(50);
    logger.info('Tool processing data');
    await wait(50);
    logger.info('Tool execution completed');
    return 'Tool with logging executed successfully';
  },
}));

const INTERACTIVE_TOOLS = [
  ...LOGGING_TOOLS,
  {
    name: 'test_tool_with_progress',
    description: 'Reports progress while it runs',
    async execute(_args, context) {
      for (const progress of [0, 50, 100]) {
        context.progress({ progress, total: 100, message: `Completed step ${progress} of 100` });
        await wait(50);
      }
      return 'Tool with progress executed successfully';
    },
  },
  ...['test_sampling', 'test_missing_capability', 'test_input_required_result_sampling'].map((name) => ({
    name,
    description: 'Asks the model of the client',
    parameters: object({ prompt: string }, name === 'test_sampling' ? ['prompt'] : []),
    async execute({ prompt: question = 'What is the capital of France?' }, context) {
      const { content } = await sampleMessage(context, prompt(question));
      return `LLM response: ${content.text}`;
    },
  })),
  {
    name: 'test_input_required_result_list_roots',
    description: 'Asks for the roots of the client',
    execute: async (_args, context) => JSON.stringify(await listRoots(context)),
  },
  {
    name: 'test_input_required_result_multiple_inputs',
    description: 'Asks the user, the model and for roots at the same time',
    async execute(_args, context) {
      const requests = [context.ask(NAME), sampleMessage(context, prompt('Generate a greeting', 50))];
      return JSON.stringify(await Promise.all([...requests, listRoots(context)]));
    },
  },
  {
    name: 'test_input_required_result_capabilities',
    description: 'Uses only the capabilities of the client',
    async execute(_args, context) {
      const { elicitation, sampling } = context.data.mcp.capabilities;
      if (elicitation !== undefined) return JSON.stringify(await context.ask(NAME));
      return sampling === undefined
        ? 'nothing'
        : JSON.stringify(await sampleMessage(context, prompt('Hello')));
    },
  },
  {
    name: 'test_reconnection',
    description: 'Closes the stream of its call and returns when the client has reconnected',
    async execute(_args, context) {
      await wait(50);
      context.data.mcp.closeStream?.();
      await wait(100);
      return 'Reconnection test completed successfully';
    },
  },
];

/** All tools. The suite calls two of them to change the lists of tools and prompts. */
export function suiteTools({ changeTools, changePrompts }) {
  const triggers = [
    { name: 'test_trigger_tool_change', description: 'Registers another tool', execute: changeTools },
    { name: 'test_trigger_prompt_change', description: 'Removes a prompt', execute: changePrompts },
  ];
  return [...RESULT_TOOLS, ...INTERACTIVE_TOOLS, ...ELICITATION_TOOLS, ...triggers].map((tool) =>
    defineTool(tool),
  );
}
