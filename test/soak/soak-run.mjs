// One random run: what the model says, when it is aborted, who reads it, and what is wrong with its history.
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

/** A reply with up to six calls, some of tools that nobody knows. */
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

/** A model that plays a script and may fail, fall silent, or be the one that aborts. */
function scriptedProvider(random, names, happened) {
  const replies = Array.from({ length: random.below(6) }, () => reply(random, names));
  const fate = random.weighted([
    [30, 'answers'],
    [1, 'fails'],
    [1, 'is silent'],
  ]);
  let asked = 0;
  const chat = async () => {
    happened();
    const next = replies[asked];
    asked += 1;
    if (next !== undefined) return next;
    if (fate === 'fails') throw new Error('the provider is down');
    if (fate === 'is silent') await new Promise(() => {});
    return { content: 'done and dusted' };
  };
  async function* stream(request) {
    const response = await chat(request);
    for (const text of response.content.split(' ')) yield { type: 'text-delta', text };
    yield { type: 'response', response };
  }
  return { provider: random.chance(0.5) ? { chat, stream } : { chat }, isSilent: fate === 'is silent' };
}

/** Plays one run and gives its result. */
export async function playRun(random, tools, onAsyncResult) {
  const controller = new AbortController();
  const abortAt = random.chance(0.2) ? random.below(12) : -1;
  let events = 0;
  const happened = () => {
    if (events === abortAt) controller.abort(new Error('enough'));
    events += 1;
  };
  const { provider, isSilent } = scriptedProvider(random, tools.list(), happened);
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
  const scope = { channel: 'soak', chatId: String(random.below(100)), onUpdate: happened };
  const messages = [{ role: 'user', content: 'Go.' }];
  const silence = isSilent ? setTimeout(() => controller.abort(), 20) : undefined;
  try {
    if (random.chance(0.7)) return await runToolLoop(config, messages, scope);
    const run = streamToolLoop(config, messages, scope);
    const leaveAt = random.chance(0.3) ? random.below(20) : Number.POSITIVE_INFINITY;
    let seen = 0;
    for await (const _ of run) if (seen++ >= leaveAt) break;
    return await run.result;
  } finally {
    clearTimeout(silence);
  }
}

/** What is wrong with the history of a run: each call is to be answered once, in order, before anything else. */
export function historyFaults({ messages, toolCalls }) {
  const faults = [];
  const answered = [];
  let open = [];
  for (const message of messages) {
    if (message.role === 'tool') {
      const expected = open.shift();
      if (expected !== message.tool_call_id) faults.push(`${message.tool_call_id} instead of ${expected}`);
      if (typeof message.content !== 'string') faults.push(`${message.tool_call_id} without text`);
      answered.push(message.tool_call_id);
      continue;
    }
    if (open.length > 0) faults.push(`unanswered: ${open.join(', ')}`);
    open = (message.tool_calls ?? []).map(({ id }) => id);
    if (new Set(open).size !== open.length) faults.push(`twice the same id: ${open.join(', ')}`);
  }
  if (open.length > 0) faults.push(`unanswered at the end: ${open.join(', ')}`);
  const recorded = toolCalls.map(({ id }) => id);
  if (recorded.join() !== answered.join()) faults.push(`recorded ${recorded} and answered ${answered}`);
  return faults;
}
