// A random run with random model replies, aborts and readers, and the check of its message history.
import { runToolLoop, streamToolLoop } from '../../dist/src/index.js';

const ARGUMENTS = [
  [10, (n) => ({ n })],
  [4, (n) => `{"n": ${n}, "text": "y"}`],
  [2, (n) => ({ n: String(n) })],
  [2, (n) => `{"n": ${n},}`],
  [1, (n) => `\`\`\`json\n{"n": ${n}}\n\`\`\``],
  [1, (n) => JSON.stringify(JSON.stringify({ n }))],
  [1, (n) => ({ n, extra: 'x', text: null })],
  [1, () => ({ n: 'many' })],
  [1, () => '{"n": 1'],
  [1, () => ''],
  [1, () => [1]],
];

const FINISH = [
  [40, undefined],
  [1, 'length'],
  [1, 'content_filter'],
];

/** A reply with up to six calls, some of them to unknown tools. */
function reply(random, names) {
  const toolCalls = Array.from({ length: 1 + random.below(6) }, (_, index) => ({
    id: random.chance(0.1) ? '' : `c${random.chance(0.05) ? 0 : index}`,
    name: random.chance(0.03) ? `unknown_${random.below(9)}` : names[random.below(names.length)],
    arguments: random.weighted(ARGUMENTS)(random.below(10)),
  }));
  return {
    content: random.chance(0.3) ? 'Let me see.' : '',
    toolCalls,
    finishReason: random.weighted(FINISH),
  };
}

/** A provider with random replies, which may finally fail or never answer. It calls `onEvent` for each request. */
function randomProvider(random, names, onEvent) {
  const replies = Array.from({ length: random.below(6) }, () => reply(random, names));
  const ending = random.weighted([
    [30, 'answers'],
    [1, 'fails'],
    [1, 'hangs'],
  ]);
  let requests = 0;
  const chat = async () => {
    onEvent();
    const next = replies[requests];
    requests += 1;
    if (next !== undefined) return next;
    if (ending === 'fails') throw new Error('the provider is down');
    if (ending === 'hangs') await new Promise(() => {});
    return { content: 'all calls completed' };
  };
  async function* stream(request) {
    const response = await chat(request);
    for (const text of response.content.split(' ')) yield { type: 'text-delta', text };
    yield { type: 'response', response };
  }
  return { provider: random.chance(0.5) ? { chat, stream } : { chat }, isHanging: ending === 'hangs' };
}

/** Runs the loop once with random options and returns its result. */
export async function runRandomly(random, tools, onAsyncResult) {
  const controller = new AbortController();
  const abortAt = random.chance(0.2) ? random.below(12) : -1;
  let events = 0;
  const onEvent = () => {
    if (events === abortAt) controller.abort(new Error('enough'));
    events += 1;
  };
  const { provider, isHanging } = randomProvider(random, tools.list(), onEvent);
  const config = {
    provider,
    model: 'soak',
    tools,
    signal: controller.signal,
    toolTimeoutMs: 50,
    maxRetries: random.below(4),
    maxIterations: random.below(8),
    maxConcurrency: random.weighted([
      [3, undefined],
      [1, 1],
      [1, 2],
    ]),
    maxResultChars: random.chance(0.2) ? 20 : undefined,
    onLimit: random.chance(0.2) ? 'answer' : 'return',
    onAsyncResult: random.chance(0.3) ? onAsyncResult : undefined,
  };
  const scope = { channel: 'soak', chatId: String(random.below(100)), onUpdate: onEvent };
  const messages = [{ role: 'user', content: 'Go.' }];
  const hangTimer = isHanging ? setTimeout(() => controller.abort(), 20) : undefined;
  try {
    if (random.chance(0.7)) return await runToolLoop(config, messages, scope);
    const run = streamToolLoop(config, messages, scope);
    const breakAt = random.chance(0.3) ? random.below(20) : Number.POSITIVE_INFINITY;
    let seen = 0;
    for await (const _ of run) if (seen++ >= breakAt) break;
    return await run.result;
  } finally {
    clearTimeout(hangTimer);
  }
}

/** Lists violations of the rule that each call is answered once, in order, before any other message. */
export function historyFaults({ messages, toolCalls }) {
  const faults = [];
  const answered = [];
  let open = [];
  for (const message of messages) {
    if (message.role === 'tool') {
      const expected = open.shift();
      if (expected !== message.tool_call_id)
        faults.push(`answer to ${message.tool_call_id} instead of ${expected}`);
      if (typeof message.content !== 'string') faults.push(`answer to ${message.tool_call_id} without text`);
      answered.push(message.tool_call_id);
      continue;
    }
    if (open.length > 0) faults.push(`unanswered: ${open.join(', ')}`);
    open = (message.tool_calls ?? []).map(({ id }) => id);
    if (new Set(open).size !== open.length) faults.push(`duplicate ids: ${open.join(', ')}`);
  }
  if (open.length > 0) faults.push(`unanswered at the end: ${open.join(', ')}`);
  const recorded = toolCalls.map(({ id }) => id);
  if (recorded.join() !== answered.join())
    faults.push(`records for ${recorded}, but answers for ${answered}`);
  return faults;
}
