import { setTimeout as pause } from 'node:timers/promises';
import type { Answer, CallStatus, PendingKind } from '../../core/contract/call.js';
import type { KeptRun, RunStatus } from '../../core/contract/run-checkpoint.js';
import type { StoredCallRecord } from '../../core/contract/run-state.js';
import type { ScheduleTiming } from '../../core/contract/schedule-store.js';
import type { RememberScope } from '../../core/contract/standing-approvals.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { counted } from '../../core/kernel/counted.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { parsedJson, withoutUndefined } from '../../core/kernel/json.js';
import { visibleLine } from '../../core/kernel/visible-text.js';
import { formOf, needsApprover } from '../../run/call/waits.js';
import { checkAnswers, enterAnswers } from '../../run/conversation/stored-turns.js';
import { type FoldedRun, foldRun } from '../../run/loop/fold-run.js';
import { answerStoredRun, cancelRun, recoverRuns } from '../../run/loop/stored-run.js';
import {
  alignedRows,
  type Command,
  type CommandEnvironment,
  FLAG,
  type LineValues,
  oneOfValues,
  parseLine,
  report,
  STRING,
  UserFault,
} from './command.js';
import { configOfModule, jsonObject, openModule, registryOfModule } from './open-module.js';
import { hasCode, type OpenStore, openStore } from './open-store.js';

/** Flags of an answer. */
const ANSWER_FLAGS = {
  to: STRING,
  approve: FLAG,
  refuse: FLAG,
  arguments: STRING,
  remember: STRING,
  until: STRING,
  module: STRING,
  value: STRING,
  result: STRING,
  done: STRING,
  'not-done': FLAG,
  reason: STRING,
  by: STRING,
};

type AnswerOptions = LineValues<typeof ANSWER_FLAGS>;

/** `toolwright runs answer`: if there are several answers to a question, the first is accepted, and the others fail. */
async function answerRun(call: RunsCall): Promise<number> {
  const { store, options, say } = call;
  const run = await readRun(call);
  const { runId, state } = run;
  const [only, ...others] = questionsOf(run);
  if (options.to === undefined && others.length > 0)
    throw new UserFault(
      `the run waits for several answers: choose one of ${[only, ...others].join(', ')} with --to; runs show ${runId} shows the questions`,
    );
  const id = options.to ?? only ?? '';
  checkWaits(run, id);
  const answer = answerOf(id, options);
  const { owner } = state;
  const isNumber = typeof owner === 'number' && /^\d+$/.test(options.by ?? '');
  const person = options.by === undefined ? undefined : personOf(options.by);
  const answeredBy = isNumber ? Number(options.by) : person;
  if (needsApprover(answer)) checkPerson({ ...run, id, answeredBy }, options);
  const conversationId = await conversationOf(store, runId);
  await using module = await checkingModule(call);
  const tools = withoutUndefined({ tools: module?.tools });
  const said = withoutUndefined({ answeredBy, owner });
  const checkStillWaits = async () => checkWaits(await readRun(call), id);
  if (conversationId !== undefined) {
    const content = { kind: 'answers' as const, answers: [answer], ...said };
    try {
      await checkAnswers({ conversationId, content, store, config: tools });
    } catch (error) {
      // Another answer may have been accepted first; then the error names who gave it.
      await checkStillWaits();
      throw error;
    }
    await enterAnswers({ runId, conversationId, content, store }, checkStillWaits);
    say(`${id}: the answer is in the inbox of conversation ${conversationId}`);
    return 0;
  }
  // Waits for another process that holds the run, unless that process has answered the same question.
  for (const since = performance.now(); ; await pause(PAUSE_MS))
    try {
      const left = await answerStoredRun({ store, runId }, [answer], { ...said, ...tools });
      const waiting = left.map((item) => item.id).join(', ');
      say(`${runId}: ${left.length === 0 ? 'a worker continues it' : `it still waits for ${waiting}`}`);
      return 0;
    } catch (error) {
      await checkStillWaits();
      const isClaimed = ToolwrightError.is(error) && error.name === 'RunClaimed';
      if (!isClaimed || performance.now() - since > PATIENCE_MS) throw error;
    }
}

/** How long to wait for a process that holds the run only to store an answer. */
const PATIENCE_MS = 3_000;
const PAUSE_MS = 50;

/** The value of `--by`: a name, or the JSON object by which the application identifies a user. */
export function personOf(text: string): unknown {
  return text.startsWith('{') ? jsonObject('--by', text) : text;
}

/** If a tool restricts who may approve it, `--by` is required to approve a call or to report its outcome. */
function checkPerson(
  { state, id, answeredBy }: KeptRun & Said & { readonly id: string },
  { module }: AnswerOptions,
): void {
  const { tool, approver } = ('pending' in state ? state.pending : []).find((asked) => asked.id === id) ?? {};
  if (approver === undefined) return;
  const rule = `'${tool}' restricts who may approve it: set --by to the person who answers`;
  if (approver === 'not-the-owner' && formOf(answeredBy) !== formOf(state.owner))
    throw new UserFault(
      `${rule}; the owner of this run is ${JSON.stringify(state.owner)}: give --by in the same form`,
    );
  if (answeredBy === undefined) throw new UserFault(`${rule}, such as --by clerk7`);
  if (approver === 'function' && module === undefined)
    throw new UserFault(
      `'${tool}' decides with a function who may approve it: give --module dist/worker.js, which exports the config of the runs, or a NestJS module`,
    );
}

function questionsOf({ state }: KeptRun): readonly string[] {
  return 'pending' in state ? state.pending.map(({ id }) => id) : [];
}

/** Throws if the run does not wait for that answer; the error names who gave the last one. */
function checkWaits(run: KeptRun, id: string): void {
  const questions = questionsOf(run);
  if (questions.includes(id)) return;
  const others = questions.map((question) => `'${question}'`).join(', ');
  const waits =
    others === '' ? 'does not wait for an answer' : `does not wait for '${id}', but for ${others}`;
  const folded = foldRun(run);
  const { end } = folded;
  const answered = lastAnswer(folded);
  const isUnderWay = run.status === 'running' && answered === undefined;
  const name = answered?.answeredBy;
  const by = name === undefined ? '' : `, last by ${JSON.stringify(name)}`;
  const why = [
    ...(end === undefined ? [] : [`it has ended (${end.status})`]),
    ...(isUnderWay ? ['it is running'] : []),
    ...(answered === undefined ? [] : [`it was already answered${by}`]),
  ];
  const problem = [waits, ...(why.length > 0 ? [why.join('; ')] : [])].join(': ');
  throw new UserFault(visibleLine(`${run.runId} ${problem}`), 1);
}

/** Who gave an answer, if it is known. */
interface Said {
  readonly answeredBy?: unknown;
}

/** The last known answer; without a name if none was given and the calls have not continued yet. */
function lastAnswer({ toolCalls, open }: FoldedRun): Said | undefined {
  const calls = open?.calls ?? [];
  const records = [...toolCalls, ...calls.flatMap((call) => ('record' in call ? [call.record] : []))];
  const journals = calls.flatMap((call) =>
    'journal' in call && call.journal !== undefined ? [call.journal] : [],
  );
  const named: Said[] = [...records, ...journals.flatMap(({ given = [] }) => given)];
  const last = named.findLast(({ answeredBy }) => answeredBy !== undefined);
  if (last !== undefined) return last;
  const isAnswered = journals.some(
    ({ approved, refused, result, outcome, answers }) =>
      (approved ?? refused ?? result ?? outcome ?? answers[0]) !== undefined,
  );
  return isAnswered ? {} : undefined;
}

/** The conversation whose open turn is this run: such run ids are the conversation's id and a number. */
async function conversationOf(store: OpenStore, runId: string): Promise<string | undefined> {
  const conversationId = runId.replace(/\.\d+$/, '');
  const kept = conversationId === runId ? undefined : await store.conversations.read(conversationId);
  return kept?.turn?.runId === runId ? conversationId : undefined;
}

/**
 * The module with the config of the runs, or their application. Its tools check approvers, edited arguments, and what
 * may be remembered.
 */
async function checkingModule({ options, environment }: RunsCall) {
  const { approve, arguments: edited, remember, module: named } = options;
  if (named !== undefined && !approve && !options['not-done'] && options.done === undefined)
    throw new UserFault('--module requires --approve, --done or --not-done');
  if (named === undefined && edited === undefined && remember === undefined) return undefined;
  const option = edited === undefined ? '--remember' : '--arguments';
  if (named === undefined)
    throw new UserFault(
      `${option} requires a module whose tool checks it: give --module dist/worker.js, which exports the config of the runs, or a NestJS module`,
    );
  const module = await openModule(named, environment.folder, 'operator');
  const { exports, nestModule } = module;
  const tools = nestModule ? registryOfModule(exports) : configOfModule(named, exports).tools;
  return { tools, [Symbol.asyncDispose]: () => module.close() };
}

function answerOf(id: string, options: AnswerOptions): Answer {
  const { approve, refuse, value, result, done, reason, arguments: edited, remember: scope, until } = options;
  if (edited !== undefined && !approve) throw new UserFault('--arguments requires --approve');
  if (reason !== undefined && !refuse) throw new UserFault('--reason requires --refuse');
  if (scope === undefined && until !== undefined) throw new UserFault('--until requires --remember');
  if (scope !== undefined && !approve) throw new UserFault('--remember requires --approve');
  const remembered = oneOfValues<RememberScope>('--remember', scope, ['run', 'conversation', 'user']);
  if (until !== undefined && Number.isNaN(Date.parse(until)))
    throw new UserFault(`--until must be a time, such as 2027-01-01T00:00:00Z, not '${until}'`);
  const expires = until === undefined ? undefined : new Date(until).toISOString();
  const remember = remembered && withoutUndefined({ scope: remembered, expires });
  const given: Answer[] = [];
  if (approve) {
    const args = edited === undefined ? undefined : jsonObject('--arguments', edited);
    given.push(withoutUndefined({ id, approved: true, arguments: args, remember }));
  }
  if (refuse) given.push(withoutUndefined({ id, approved: false, reason }));
  if (value !== undefined) given.push({ id, value: json('--value', value) });
  if (result !== undefined) given.push({ id, result: json('--result', result) });
  if (done !== undefined) given.push({ id, outcome: 'done', result: json('--done', done) });
  if (options['not-done']) given.push({ id, outcome: 'not-done' });
  const [answer, second] = given;
  if (answer !== undefined && second === undefined) return answer;
  throw new UserFault('give exactly one of --approve, --refuse, --value, --result, --done, --not-done');
}

function json(option: string, text: string): unknown {
  const value = parsedJson(text);
  if (value === undefined)
    throw new UserFault(`${option} must be JSON, such as ${option} '"yes"', not '${text}'`);
  return value;
}

/** Arguments of every part of the command. */
interface RunsCall {
  readonly store: OpenStore;
  readonly options: RunsOptions;
  /** The id of a run, the module, …; empty if the part takes none. */
  readonly named: string;
  /** Writes one line; escapes line breaks and control characters in text of models, clients and tools. */
  readonly say: (line: string) => void;
  readonly environment: CommandEnvironment;
}

const OPTIONS = {
  store: STRING,
  status: STRING,
  limit: STRING,
  after: STRING,
  json: FLAG,
  ...ANSWER_FLAGS,
  'on-unknown': STRING,
};

type RunsOptions = LineValues<typeof OPTIONS>;

/** A part of the command. */
interface RunsPart {
  /** What its argument names. */
  readonly to?: string;
  /** Its options in addition to `--store`. */
  readonly takes: readonly (keyof RunsOptions)[];
  run(call: RunsCall): Promise<number>;
}

const RUN = 'the id of the run';

const PARTS: Readonly<Record<string, RunsPart>> = {
  list: { takes: ['status', 'limit', 'after', 'json'], run: listRuns },
  show: { to: RUN, takes: ['json'], run: showRun },
  answer: {
    to: RUN,
    takes: Object.keys(ANSWER_FLAGS) as (keyof typeof ANSWER_FLAGS)[],
    run: answerRun,
  },
  cancel: {
    to: RUN,
    takes: ['reason'],
    run: async (call) => {
      const { store, named: runId, options } = call;
      const isCancelled = await cancelRun({ store, runId, reason: options.reason });
      return sayOutcome(call, isCancelled, ['cancelled', 'it had already ended']);
    },
  },
  recover: { to: 'the module', takes: ['on-unknown'], run: recover },
  approvals: { takes: ['json'], run: listApprovals },
  revoke: {
    to: 'the id of the approval',
    takes: [],
    run: async (call) => {
      const isRevoked = await call.store.approvals.revokeApproval(call.named);
      return sayOutcome(call, isRevoked, ['revoked', 'there is no such approval']);
    },
  },
  schedules: { takes: ['json'], run: listSchedules },
  unschedule: {
    to: 'the id of the schedule',
    takes: [],
    run: async (call) => {
      const isCancelled = await call.store.schedules.cancelSchedule(call.named);
      return sayOutcome(call, isCancelled, ['cancelled', 'there is no such schedule']);
    },
  },
};

/** `toolwright runs`: lists and answers the runs of a store, and manages its standing approvals and schedules. */
export const command: Command = async (args, environment) => {
  const { values: options, positionals } = parseLine(args, OPTIONS);
  const [name = '', named = '', ...more] = positionals;
  const part = Object.hasOwn(PARTS, name) ? PARTS[name] : undefined;
  if (part === undefined)
    throw new UserFault(
      `runs needs one of ${Object.keys(PARTS).join(', ')}: toolwright runs list --store runs.sqlite`,
    );
  const [extra] = part.to === undefined ? positionals.slice(1) : more;
  if (extra !== undefined) throw new UserFault(`runs ${name} does not take the argument '${extra}'`);
  for (const [option, value] of Object.entries(options)) {
    if (option === 'store') continue;
    // The user expects that an option has an effect.
    const users = Object.entries(PARTS).filter(([, { takes }]) => takes.some((taken) => taken === option));
    const names = users.map(([user]) => user);
    if (!names.includes(name))
      throw new UserFault(`--${option} can be used with runs ${names.join(', ')}, not with runs ${name}`);
    if (value === '') throw new UserFault(`--${option} is empty: give a value, or leave it out`);
  }
  if (part.to !== undefined && named === '')
    throw new UserFault(
      `${part.to} is missing: toolwright runs ${name} <${part.to.split(' ').at(-1)}> --store …`,
    );
  await using store = await openStore(options.store, environment);
  const say = (line: string) => environment.out(`${visibleLine(line)}\n`);
  try {
    return await part.run({ store, options, named, say, environment });
  } catch (error) {
    // A refusal of the store or the run is the answer to the user.
    const isAnswer = error instanceof UserFault || ToolwrightError.is(error) || hasCode(error);
    if (!isAnswer) throw error;
    const line = errorMessage(error).replace(/\s*\n\s*(?:- )?/g, ' ');
    throw new UserFault(line, error instanceof UserFault ? error.exitCode : 1);
  }
};

async function listRuns(call: RunsCall): Promise<number> {
  const { store, options, environment } = call;
  const { after, limit = '50' } = options;
  const status = oneOfValues<RunStatus>('--status', options.status, ['running', 'suspended', 'ended']);
  if (!/^([1-9]\d{0,2}|1000)$/.test(limit))
    throw new UserFault(`--limit must be a whole number from 1 to 1000, not '${limit}'`);
  const { runs, next } = await store.list({ limit: Number(limit), status, after });
  sayItems(call, runs, {
    head: ['run', 'status', 'changed', ''],
    row: ({ runId, status: state, changedAt, leaseEnd }) => [
      ...[runId, state, new Date(changedAt).toISOString()],
      state !== 'running' ? '' : (leaseEnd ?? 0) > Date.now() ? 'held' : 'lost',
    ],
  });
  if (next !== undefined) report(environment, `more with --after '${next}'`);
  return 0;
}

async function showRun(call: RunsCall): Promise<number> {
  const { options, say } = call;
  const run = await readRun(call);
  const folded = foldRun(run);
  const { messages, open, toolCalls, iterations, usage, owner, model, end } = folded;
  const pending = 'pending' in run.state ? run.state.pending : [];
  const { runId, status, generation, changedAt } = run;
  if (options.json) {
    const stored = { runId, status, generation, changedAt, owner, model, iterations, usage, messages };
    const compensated = Array.from(folded.compensated.values(), ({ type: _, ...entry }) => entry);
    say(JSON.stringify({ ...stored, open, toolCalls, pending, end, compensated }));
    return 0;
  }
  say(
    `${runId}: ${status}, ${counted(iterations, 'request')} to ${model}, ${counted(messages.length, 'message')}, ${counted(toolCalls.length, 'call')}`,
  );
  if (usage.totalTokens > 0) say(`tokens: ${usage.totalTokens}`);
  if (owner !== undefined) say(`owner: ${JSON.stringify(owner)}`);
  if (end !== undefined) say(`ended: ${end.status}${end.error ? ` (${end.error.message})` : ''}`);
  for (const record of toolCalls) sayCall(say, record, folded);
  for (const item of open?.calls ?? [])
    if ('name' in item) say(`call: ${item.name} ${item.status}`);
    else sayCall(say, item.record, folded);
  for (const { id, kind, tool, arguments: args, message, title, description, ...item } of pending) {
    const { risk, approver, expiresAt } = item;
    const parts = [id, kind, tool, JSON.stringify(args), message, title, risk && `risk: ${risk}`];
    const limits = [approver && `approver: ${approver}`, expiresAt && `until ${expiresAt}`];
    say(`waits: ${[...parts, ...limits].filter(Boolean).join(' ')}`);
    // Lines of a description are indented, so that they cannot imitate lines of this command.
    for (const line of description?.split('\n') ?? []) say(`  ${line}`);
  }
  const last = messages.at(-1);
  if (end !== undefined && last?.role === 'assistant' && last.content) say(`reply: ${headOf(last.content)}`);
  return 0;
}

/** Prints a call with its result, who answered it, and whether it was compensated. */
function sayCall(say: RunsCall['say'], record: StoredCallRecord, { compensated }: FoldedRun): void {
  const { name, status, rawArguments, arguments: args = rawArguments, answeredBy, result } = record;
  const { answers = answeredBy === undefined ? [] : [{ kind: 'question', answeredBy }] } = record;
  const undone = compensated.get(record.idempotencyKey ?? '');
  const by = answers.map(
    (answer) => `, ${answeredAs(answer.kind, status)} by ${JSON.stringify(answer.answeredBy)}`,
  );
  say(
    `call: ${name} ${status} ${headOf(JSON.stringify(args) ?? '')}: ${headOf(result.forLLM)}${by.join('')}`,
  );
  if (undone !== undefined)
    say(`${undone.isError ? 'not undone' : 'undone'}: ${name}: ${headOf(undone.text)}`);
}

/** A policy may refuse a call after it was approved. */
function answeredAs(kind: PendingKind, status: CallStatus): string {
  if (kind === 'outcome') return 'outcome reported';
  return kind === 'approval' && status !== 'refused' ? 'approved' : 'answered';
}

const HEAD = 120;

/** `--json` prints the whole text. */
function headOf(text: string): string {
  return text.length <= HEAD ? text : `${text.slice(0, HEAD).toWellFormed()}…`;
}

/** Lists the standing approvals. */
async function listApprovals(call: RunsCall): Promise<number> {
  sayItems(call, await call.store.approvals.listApprovals(), {
    head: ['approval', 'tool', 'for', 'owner', 'arguments', 'approved by', 'until'],
    row: ({ id, tool, scope, subject = '', owner, pattern, answeredBy, expiresAt }) => [
      ...[id, tool, `${scope} ${subject}`.trim(), jsonText(owner), jsonText(pattern), jsonText(answeredBy)],
      expiresAt === undefined ? '' : new Date(expiresAt).toISOString(),
    ],
  });
  return 0;
}

/** Lists prompts that enter conversations later. */
async function listSchedules(call: RunsCall): Promise<number> {
  sayItems(call, await call.store.schedules.listSchedules({ limit: 1_000 }), {
    head: ['schedule', 'conversation', 'owner', 'due', 'again', 'text'],
    row: ({ id, conversationId, owner, timing, dueAt, text }) => [
      ...[id, conversationId, jsonText(owner), new Date(dueAt).toISOString()],
      ...[timingOf(timing), jsonText(text)],
    ],
  });
  return 0;
}

function timingOf(timing: ScheduleTiming): string {
  if (timing.kind === 'once') return '';
  return timing.kind === 'every' ? `every ${timing.everyMs} ms` : `${timing.cron} ${timing.timeZone}`;
}

function sayOutcome(
  { named, say }: RunsCall,
  isDone: boolean,
  [done, notDone]: readonly [string, string],
): 0 | 1 {
  say(`${named}: ${isDone ? done : notDone}`);
  return isDone ? 0 : 1;
}

async function recover({ store, named, options, say, environment }: RunsCall): Promise<number> {
  const onUnknown = oneOfValues('--on-unknown', options['on-unknown'], ['ask', 'error', 'rerun']) ?? 'ask';
  await using module = await openModule(named, environment.folder, 'operator');
  const { recovery = { config: configOfModule(named, module.exports) } } = module;
  const recovered = await recoverRuns({ store, ...recovery, onUnknown });
  for (const item of recovered)
    say(`${item.runId}: ${'result' in item ? item.result.status : errorMessage(item.error)}`);
  return recovered.every((item) => 'result' in item) ? 0 : 1;
}

async function readRun({ store, named: runId }: RunsCall): Promise<KeptRun> {
  const run = await store.read(runId);
  if (run === undefined) throw new UserFault(`the store has no run '${visibleLine(runId)}'`, 1);
  return run;
}

/** A wider cell shifts only the rest of its own line. */
const WIDEST = 40;

/** Prints items, each as a line of JSON or as a row of a table. */
function sayItems<Item>(
  { options, say }: RunsCall,
  items: readonly Item[],
  { head, row }: { readonly head: readonly string[]; readonly row: (item: Item) => readonly string[] },
): void {
  const rows = [head, ...items.map(row)].map((cells) => cells.map(visibleLine));
  const lines = options.json ? items.map(jsonText) : alignedRows(rows, { widest: WIDEST });
  for (const line of lines) say(line);
}

function jsonText(value: unknown): string {
  return JSON.stringify(value) ?? '';
}
