import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CallRecord, CallScope } from '../../core/contract/call.js';
import type { Message } from '../../core/contract/llm-provider.js';
import { type LLMProvider } from '../../core/contract/llm-provider.js';
import { isRecord, mapFields, parsedJson, plainJson, withoutUndefined } from '../../core/kernel/json.js';
import { type ToolRegistry } from '../../run/call/tool-registry.js';
import { resumeToolLoop, runToolLoop } from '../../run/loop/run.js';
import type { WrittenTests } from './options.js';
import { type GivenReply, repliesIn, type SeenCall, type SeenRun } from './watched.js';

/** The reply of a model to one request. */
interface RecordedReply {
  readonly content: string;
  readonly toolCalls?: readonly {
    readonly id?: string;
    readonly name: string;
    readonly arguments?: unknown;
  }[];
}

interface RecordedCall {
  readonly name: string;
  readonly arguments: unknown;
  readonly status: string;
  readonly forLLM: string;
  readonly forUser?: string;
}

/** The result of a recorded or replayed run. */
interface Outcome {
  readonly status: string;
  readonly content: string;
  readonly calls: readonly RecordedCall[];
}

/** A run as plain JSON that can be replayed; a single call is a run with one call. */
export interface Recording {
  readonly id: string;
  readonly kind: 'call' | 'run';
  readonly title: string;
  readonly at: number;
  readonly messages: readonly Message[];
  /** The replies of the model, which a replay repeats. */
  readonly replies: readonly RecordedReply[];
  /** The answers, by wait. */
  readonly answers: readonly (readonly GivenReply[])[];
  readonly scope: { readonly [part: string]: unknown };
  readonly outcome: Outcome;
}

const LONGEST_TITLE = 60;

/** The recording of a run; `undefined` while it is running. */
export function recordRun(seen: SeenRun): Recording | undefined {
  const { runId, given, answers, result, run } = seen;
  if (result === undefined) return undefined;
  const { state } = result;
  // The reply with waiting calls, without questions of the run itself.
  const made = state?.open.calls.filter((call) => !('asks' in call)) ?? [];
  const toolCalls = made.map((call) =>
    call.status === 'settled'
      ? { id: call.record.id, name: call.record.name, arguments: call.record.rawArguments }
      : { id: call.id, name: call.name, arguments: call.arguments },
  );
  const open = state && { content: state.open.content, toolCalls };
  const line = lastPrompt(given)?.replace(/\s+/g, ' ').trim() ?? 'a run';
  const replies = [...recordedReplies(result.messages.slice(given.length)), ...(open ? [open] : [])];
  return {
    id: runId,
    kind: 'run',
    title: line.length > LONGEST_TITLE ? `${line.slice(0, LONGEST_TITLE)}…` : line,
    at: seen.begin,
    messages: plain(given),
    replies,
    answers,
    scope: plainScope(run.scope),
    outcome: outcomeOf(result.status, result.content, result.toolCalls),
  };
}

/** The recording of a call, as a run with this call only. */
export function recordCall({
  callId,
  tool,
  arguments: args,
  at,
  scope,
  journal,
  invocation,
}: SeenCall): Recording | undefined {
  if (invocation === undefined) return undefined;
  const isDone = invocation.status !== 'suspended';
  const content = isDone ? LAST_WORD : '';
  return {
    id: `call-${callId}`,
    kind: 'call',
    title: `a call of ${tool}`,
    at,
    messages: [{ role: 'user', content: `Call ${tool}` }],
    replies: [
      { content: '', toolCalls: [{ name: tool, arguments: plain(args) }] },
      ...(isDone ? [{ content }] : []),
    ],
    answers: journal === undefined ? [] : [repliesIn(tool, journal)],
    scope: plainScope(scope),
    outcome: outcomeOf(isDone ? 'completed' : 'suspended', content, isDone ? [invocation.record] : []),
  };
}

const LAST_WORD = 'Done.';

function outcomeOf(status: string, content: string, records: readonly CallRecord[]): Outcome {
  const calls = records.map(({ name, rawArguments, arguments: args, status: ended, result }) => ({
    name,
    arguments: plain(args ?? rawArguments),
    status: ended,
    forLLM: result.forLLM,
    ...(result.forUser ? { forUser: result.forUser } : {}),
  }));
  return { status, content, calls };
}

/** The replies of a model among the messages of a run. */
export function recordedReplies(messages: readonly Message[]): readonly RecordedReply[] {
  return messages.flatMap((message) => {
    if (message.role !== 'assistant') return [];
    const toolCalls = (message.tool_calls ?? []).map(({ id, function: called }) => ({
      id,
      name: called.name,
      arguments: called.arguments,
    }));
    const content = typeof message.content === 'string' ? message.content : '';
    return [{ content, ...(toolCalls.length > 0 ? { toolCalls } : {}) }];
  });
}

/** The text of the user's last prompt. */
export function lastPrompt(messages: readonly Message[]): string | undefined {
  const prompt = messages.findLast(({ role }) => role === 'user')?.content;
  return typeof prompt === 'string' ? prompt : undefined;
}

/** Key of the entered request in a scope. Copies of the scope keep it, and tools do not see it. */
const REQUEST = Symbol('the chosen request');

/** Attaches the entered request to a scope. */
export function scopeFromRequest(scope: CallScope, request: unknown): CallScope {
  return request === undefined ? scope : ({ ...scope, [REQUEST]: request } as CallScope);
}

function plainScope(scope: SeenCall['scope']): Recording['scope'] {
  const { channel, chatId, conversationId, owner, data } = scope;
  const parts = { channel, chatId, conversationId, owner, data, request: Reflect.get(scope, REQUEST) };
  return withoutUndefined(mapFields(parts, plain));
}

function plain<Value>(value: Value): Value {
  try {
    return plainJson(value) as Value;
  } catch {
    // Values that JSON cannot represent are not from the model, and are left out.
    return undefined as Value;
  }
}

interface ReplayOptions {
  readonly tools: ToolRegistry;
  /** Default: the recorded replies. */
  readonly model: { readonly provider: LLMProvider; readonly model: string } | undefined;
  readonly scope: CallScope;
  readonly answeredBy: unknown;
}

/** Repeats a recorded run with the current tools. Effects happen again. */
export async function replay(recording: Recording, { tools, model, scope, answeredBy }: ReplayOptions) {
  const left = [...recording.replies];
  const recorded: LLMProvider = {
    async chat() {
      const reply = left.shift();
      if (reply === undefined)
        throw new Error('the recording ends here; the recorded run made no further request');
      const toolCalls = (reply.toolCalls ?? []).map(({ id = '', name, arguments: args = {} }) => ({
        id,
        name,
        arguments: args as string,
      }));
      const finishReason = toolCalls.length > 0 ? 'tool_calls' : 'stop';
      return { content: reply.content, toolCalls, finishReason };
    },
  };
  const runId = crypto.randomUUID();
  const from = model ?? { provider: recorded, model: 'recorded' };
  const config = { ...from, tools, runId, providerRetries: 0, loopGuard: false } as const;
  let run = await runToolLoop(config, recording.messages, scope);
  for (const given of recording.answers) {
    const { pending = [] } = run;
    const fits = given.length === pending.length && pending.every(({ tool }, at) => given[at]?.tool === tool);
    if (run.status !== 'suspended' || !fits) break;
    const answers = given.map(({ tool: _, ...said }, at) => ({ id: pending[at]?.id ?? '', ...said }));
    run = await resumeToolLoop(config, run.state, answers, { scope, answeredBy });
  }
  return { runId, before: recording.outcome, after: outcomeOf(run.status, run.content, run.toolCalls) };
}

/** Stores recordings in memory, or in a folder. */
export class Recordings {
  readonly #folder: string | undefined;
  readonly #stored = new Map<string, Recording>();
  #loaded: Promise<void> | undefined;

  constructor(folder: string | undefined) {
    this.#folder = folder;
  }

  async save(recording: Recording): Promise<Recording> {
    await this.#load();
    const stored = { ...recording, id: `${Date.now()}-${randomUUID().slice(0, 8)}` };
    this.#stored.set(stored.id, stored);
    if (this.#folder !== undefined) {
      await mkdir(this.#folder, { recursive: true });
      await writeFile(join(this.#folder, `${stored.id}.json`), `${JSON.stringify(stored, null, 2)}\n`);
    }
    return stored;
  }

  async list(): Promise<readonly Recording[]> {
    await this.#load();
    return [...this.#stored.values()].sort((one, other) => (one.id < other.id ? 1 : -1));
  }

  async get(id: string): Promise<Recording | undefined> {
    await this.#load();
    return this.#stored.get(id);
  }

  #load(): Promise<void> {
    this.#loaded ??= this.#read();
    return this.#loaded;
  }

  async #read(): Promise<void> {
    if (this.#folder === undefined) return;
    const names = await readdir(this.#folder).catch(() => []);
    for (const name of names.filter((name) => name.endsWith('.json'))) {
      const text = await readFile(join(this.#folder, name), 'utf8');
      // Ignore other files in the folder.
      const value = parsedJson(text);
      const isOne = isRecord(value) && typeof value.id === 'string' && Array.isArray(value.replies);
      const recording = isOne && isRecord(value.outcome) ? (value as unknown as Recording) : undefined;
      if (recording !== undefined) this.#stored.set(recording.id, recording);
    }
  }
}

interface WrittenTest {
  readonly name: string;
  readonly text: string;
}

const SETUP = "// The registry of the tools.\nimport { tools } from './tools.js';";

/** Writes a Jest test that repeats a recorded run with the recorded replies, and expects the same results. */
export function writeTest(
  recording: Recording,
  { setup = SETUP, scopeOf }: Partial<Pick<WrittenTests, 'setup' | 'scopeOf'>> = {},
): WrittenTest {
  const { replies, messages, answers, outcome } = recording;
  const called = outcome.calls.map(({ name }) => name).join(', ') || 'no call';
  const name = `${recording.title}: ${called} as recorded`;
  const waits = answers.filter(({ length }) => length > 0);
  const loop = waits.length > 0 ? 'resumeToolLoop, runToolLoop' : 'runToolLoop';
  const { request, ...parts } = recording.scope;
  let scope = Object.keys(parts).length > 0 ? `, ${literal(parts, 1)}` : '';
  // The setup creates the scope if there was a request.
  if (request !== undefined && scopeOf !== undefined)
    scope = `, ${scopeOf}(${literal(request, 1)}, ${literal(parts, 1)})`;
  const hasEnd = outcome.status === 'completed' || outcome.status === 'suspended';
  // A run that did not complete may send another request.
  const script = hasEnd ? replies : [...replies, { content: 'The end.' }];
  const text = [
    "import { expect, test } from '@jest/globals';",
    `import { ${loop} } from 'toolwright';`,
    "import { ScriptedProvider } from 'toolwright/testing';",
    setup.trim(),
    '',
    `test(${literal(name, 0)}, async () => {`,
    `  const provider = new ScriptedProvider(${literal(script, 1)});`,
    "  const config = { provider, model: 'scripted', tools };",
    `  const messages = ${literal(messages, 1)} as const;`,
    `  ${waits.length > 0 ? 'let' : 'const'} run = await runToolLoop(config, messages${scope});`,
    // The answers of one wait, in the order of the pending calls.
    ...waits.flatMap((wave) => [
      '  {',
      `    const answered = ${literal(
        wave.map(({ tool: _, ...answer }) => answer),
        2,
      )};`,
      '    const answers = (run.pending ?? []).map(({ id }, index) => ({ id, ...answered[index]! }));',
      `    run = await resumeToolLoop(config, run.state, answers${scope});`,
      '  }',
    ]),
    '  const calls = run.toolCalls.map(({ name, status, result }) => ({ name, status, forLLM: result.forLLM }));',
    `  expect(calls).toEqual(${literal(
      outcome.calls.map(({ name, status, forLLM }) => ({ name, status, forLLM })),
      1,
    )});`,
    ...(hasEnd
      ? [`  expect(run.status).toBe(${literal(outcome.status, 0)});`, '  provider.assertUsedUp();']
      : []),
    '});',
    '',
  ].join('\n');
  const words = recording.title.toLowerCase().match(/[a-z0-9]+/g) ?? ['recorded'];
  return { name: `${words.slice(0, 6).join('-')}.test.ts`, text };
}

/** JSON as a literal in source code, indented by a depth. */
function literal(value: unknown, depth: number): string {
  const text = JSON.stringify(value, null, 2) ?? 'undefined';
  return text
    .replaceAll('\n', `\n${'  '.repeat(depth)}`)
    .replaceAll('\u2028', '\\u2028')
    .replaceAll('\u2029', '\\u2029');
}

/** Writes a test under an unused name; returns the path. */
export async function saveTest({ name, text }: WrittenTest, { folder }: WrittenTests): Promise<string> {
  await mkdir(folder, { recursive: true });
  for (let number = 1; ; number += 1) {
    const path = join(folder, number === 1 ? name : name.replace('.test.ts', `-${number}.test.ts`));
    try {
      await writeFile(path, text, { flag: 'wx' });
      return path;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

/** The call as a shell command, as a script and as a reply of a `ScriptedProvider`. */
export function callTexts(
  { tool, args }: { readonly tool: string; readonly args: unknown },
  { page, setup = SETUP }: { readonly page: string; readonly setup: string | undefined },
): { readonly curl: string; readonly script: string; readonly scripted: string } {
  const body = JSON.stringify({ tool, arguments: args });
  // Quotes must be escaped in a quoted text of a shell.
  const quoted = body.replaceAll("'", `'\\''`);
  return {
    curl: [
      `curl -X POST '${page}api/calls' \\`,
      "  -H 'content-type: application/json' \\",
      '  -H "authorization: Bearer $TOOLWRIGHT_INSPECTOR_TOKEN" \\',
      `  -d '${quoted}'`,
    ].join('\n'),
    script: [
      setup.trim(),
      '',
      `const result = await tools.execute(${literal(tool, 0)}, ${literal(args, 0)});`,
      'console.log(result.forLLM);',
    ].join('\n'),
    scripted: `{ toolCalls: [{ name: ${literal(tool, 0)}, arguments: ${literal(args, 0)} }] }`,
  };
}
