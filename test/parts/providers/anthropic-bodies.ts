/** A content block of a reply, with the fields that tests check. */
type Block = Readonly<Record<string, unknown>>;

/** A complete reply of Anthropic’s Messages API. */
export interface AnthropicMessage {
  readonly content: readonly Block[];
  readonly stop_reason: string | null;
  readonly usage: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

/** The token counts that tests check. */
type Tokens = Readonly<Record<string, number>>;

const NO_DETAILS = { container: null, stop_details: null, stop_sequence: null };

/** Token usage under both names that the API uses. */
const NOTHING_COUNTED = {
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens_details: null,
  server_tool_use: null,
};

/** A message of these blocks, with all fields that the API sends. */
export function anthropicMessage(
  content: readonly Block[],
  {
    model = 'claude-sonnet-4-5',
    stop = 'end_turn',
    usage = { input_tokens: 1, output_tokens: 1 },
  }: {
    readonly model?: unknown;
    readonly stop?: string;
    readonly usage?: Tokens;
  } = {},
): AnthropicMessage {
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model,
    content: content.map(wholeBlock),
    stop_reason: stop,
    ...NO_DETAILS,
    diagnostics: null,
    usage: {
      ...NOTHING_COUNTED,
      cache_creation: null,
      inference_geo: null,
      service_tier: 'standard',
      speed: null,
      ...usage,
    },
  };
}

function wholeBlock(block: Block): Block {
  if (block.type === 'text') return { citations: null, ...block };
  return block.type === 'tool_use' ? { caller: { type: 'direct' }, ...block } : block;
}

/** The same message as a stream, with each text split into these pieces. */
export function anthropicEvents(
  message: AnthropicMessage,
  cut: (text: string) => readonly string[],
): readonly unknown[] {
  const { content, stop_reason, usage } = message;
  const { input_tokens, output_tokens } = usage;
  const start = { ...message, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } };
  return [
    { type: 'message_start', message: start },
    ...content.flatMap((block, index) => [
      { type: 'content_block_start', index, content_block: { ...block, ...emptied(block) } },
      ...deltasOf(block, cut).map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ]),
    {
      type: 'message_delta',
      delta: { ...NO_DETAILS, stop_reason },
      usage: { ...NOTHING_COUNTED, ...read(usage), input_tokens, output_tokens },
    },
    { type: 'message_stop' },
  ];
}

function read({ cache_creation_input_tokens, cache_read_input_tokens }: AnthropicMessage['usage']) {
  return { cache_creation_input_tokens, cache_read_input_tokens };
}

function emptied({ type }: Block): Block {
  if (type === 'thinking') return { thinking: '', signature: '' };
  if (type === 'text') return { text: '' };
  return type === 'tool_use' ? { input: {} } : {};
}

function deltasOf(block: Block, cut: (text: string) => readonly string[]): readonly unknown[] {
  if (block.type === 'thinking')
    return [
      ...cut(String(block.thinking)).map((thinking) => ({ type: 'thinking_delta', thinking })),
      { type: 'signature_delta', signature: block.signature },
    ];
  if (block.type === 'text') return cut(String(block.text)).map((text) => ({ type: 'text_delta', text }));
  if (block.type !== 'tool_use') return [];
  return cut(JSON.stringify(block.input)).map((partial_json) => ({ type: 'input_json_delta', partial_json }));
}
