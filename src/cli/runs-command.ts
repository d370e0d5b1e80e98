import { parseArgs } from 'node:util';
import type { CallStatus, PendingCall, PendingKind } from '../contract/call.js';
import type { KeptRun, RunStatus } from '../contract/run-checkpoint.js';
import type { StoredCallRecord } from '../contract/run-state.js';
import type { ScheduleTiming } from '../contract/schedule-store.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { errorMessage } from '../kernel/error-message.js';
import { visibleLine } from '../kernel/visible-text.js';
import { type FoldedRun, foldRun } from '../loop/fold-run.js';
import { recoverRuns } from '../loop/recover-runs.js';
import { cancelRun } from '../loop/stored-run.js';
import { ANSWER_OPTIONS, answerRun } from './answer-run.js';
import { type Command, type CommandSurroundings, UserFault } from './command.js';
import { configOfModule, openModule } from './open-module.js';
import { hasCode, type OpenStore, openStore } from './open-store.js';

/** What every part of the command has at hand. */
interface RunsCall {
  readonly store: OpenStore;
  readonly options: RunsOptions;
  /** The run, the module, …; empty where the part takes none. */
  readonly named: string;
  /** Writes one line: what models, clients and tools have written cannot end it, and a terminal obeys none of it. */
  readonly say: (line: string) => void;
  readonly surroundings: CommandSurroundings;
}

const OPTIONS = {
  store: { type: 'string' },
  status: { type: 'string' },
  limit: { type: 'string' },
  after: { type: 'string' },
  json: { type: 'boolean' },
  ...ANSWER_OPTIONS,
  'on-unknown': { type: 'string' },
} as const;

type RunsOptions = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>['values'];

/** One thing that the command does. */
interface RunsPart {
  /** What it is done to. */
  readonly to?: 'the id of the run' | 'the id of the approval' | 'the id of the schedule' | 'the module';
  /** Beside `--store`. */
  readonly takes: readonly (keyof RunsOptions)[];
  run(call: RunsCall): Promise<number>;
}

const RUN = 'the id of the run';

const PARTS: Readonly<Record<string, RunsPart>> = {
  list: { takes: ['status', 'limit', 'after', 'json'], run: listRuns },
  show: { to: RUN, takes: ['json'], run: showRun },
  answer: {
    to: RUN,
    takes: Object.keys(ANSWER_OPTIONS) as (keyof typeof ANSWER_OPTIONS)[],
    run: async (call) => answerRun({ ...call, run: await readRun(call) }),
  },
  cancel: { to: RUN, takes: ['reason'], run: cancel },
  recover: { to: 'the module', takes: ['on-unknown'], run: recover },
  approvals: { takes: ['json'], run: listApprovals },
  revoke: { to: 'the id of the approval', takes: [], run: revokeApproval },
  schedules: { takes: ['json'], run: listSchedules },
  unschedule: { to: 'the id of the schedule', takes: [], run: cancelSchedule },
};

/** `toolwright runs`: what an operator does with the runs of a store, its standing approvals and its schedules. */
export const runsCommand: Command = {
  async run(args, surroundings) {
    const { values: options, positionals } = parseArgs({
      args: [...args],
      options: OPTIONS,
      allowPositionals: true,
    });
    const [name = '', named = '', ...more] = positionals;
    const part = Object.hasOwn(PARTS, name) ? PARTS[name] : undefined;
    if (part === undefined)
      throw new UserFault(
        `runs takes one of ${Object.keys(PARTS).join(', ')}: toolwright runs list --store runs.sqlite`,
      );
    checkLine(name, part, { options, given: part.to === undefined ? positionals.slice(1) : more });
    if (part.to !== undefined && named === '')
      throw new UserFault(
        `${part.to} is missing: toolwright runs ${name} <${part.to.split(' ').at(-1)}> --store …`,
      );
    const store = await openStore(options.store, surroundings);
    const say = (line: string) => surroundings.out(`${visibleLine(line)}\n`);
    try {
      return await part.run({ store, options, named, say, surroundings });
    } catch (error) {
      // What the store or the run refuses is the answer to what was asked.
      const isAnswer = error instanceof UserFault || ToolwrightError.is(error) || hasCode(error);
      if (!isAnswer) throw error;
      const line = errorMessage(error).replace(/\s*\n\s*(?:- )?/g, ' ');
      throw new UserFault(line, error instanceof UserFault ? error.exitCode : 1);
    } finally {
      await store.close();
    }
  },
};

/** What stands on the command line, beside what the part is done to. */
interface GivenLine {
  readonly options: RunsOptions;
  readonly given: readonly string[];
}

/** What a part would not look at is a mistake: whoever wrote it believes that it counts. */
function checkLine(name: string, { takes }: RunsPart, { options, given: [extra] }: GivenLine): void {
  if (extra !== undefined) throw new UserFault(`runs ${name} takes no '${extra}'`);
  for (const [option, value] of Object.entries(options)) {
    const takesIt = ({ takes }: Pick<RunsPart, 'takes'>) => takes.some((taken) => taken === option);
    if (option === 'store') continue;
    if (!takesIt({ takes })) {
      const others = Object.keys(PARTS).filter((other) => PARTS[other] && takesIt(PARTS[other]));
      throw new UserFault(`--${option} goes with runs ${others.join(', ')}, and not with runs ${name}`);
    }
    if (value === '') throw new UserFault(`--${option} is empty: say something, or leave it out`);
  }
}

const STATUSES: readonly string[] = ['running', 'suspended', 'ended'];

async function listRuns({ store, options, say, surroundings }: RunsCall): Promise<number> {
  const { status, after, limit = '50', json } = options;
  if (status !== undefined && !STATUSES.includes(status))
    throw new UserFault(`--status is ${STATUSES.join(', ')}, not '${status}'`);
  if (!/^([1-9]\d{0,2}|1000)$/.test(limit))
    throw new UserFault(`--limit is a whole number from 1 to 1000, not '${limit}'`);
  const query = {
    limit: Number(limit),
    ...(status === undefined ? {} : { status: status as RunStatus }),
    ...(after === undefined ? {} : { after }),
  };
  const { runs, next } = await store.list(query);
  if (json) {
    for (const run of runs) say(JSON.stringify(run));
  } else {
    const rows = runs.map(({ runId, status: state, changedAt, leaseEnd }) => [
      ...[runId, state, new Date(changedAt).toISOString()],
      state === 'running' ? holderOf(leaseEnd) : '',
    ]);
    sayTable(say, [['run', 'status', 'changed', ''], ...rows]);
  }
  if (next !== undefined) surroundings.error(`toolwright: more with --after '${visibleLine(next)}'\n`);
  return 0;
}

function holderOf(leaseEnd: number | undefined): string {
  return leaseEnd !== undefined && leaseEnd > Date.now() ? 'held' : 'lost';
}

async function showRun(call: RunsCall): Promise<number> {
  const { options, say } = call;
  const run = await readRun(call);
  const folded = foldRun(run);
  const { messages, open, toolCalls, iterations, usage, owner, model, end } = folded;
  const pending = 'pending' in run.state ? run.state.pending : [];
  const { runId, status, generation, changedAt } = run;
  const compensated = Array.from(folded.compensated.values(), ({ type: _, ...entry }) => entry);
  const kept = { runId, status, generation, changedAt, owner, model, iterations, usage, messages };
  const told = { ...kept, open, toolCalls, pending, end, compensated };
  if (options.json) {
    say(JSON.stringify(told));
    return 0;
  }
  say(
    `${runId}: ${status}, ${iterations} requests to ${model}, ${messages.length} messages, ${toolCalls.length} calls`,
  );
  if (usage.totalTokens > 0) say(`tokens: ${usage.totalTokens}`);
  if (owner !== undefined) say(`owner: ${JSON.stringify(owner)}`);
  if (end !== undefined) say(`ended: ${end.status}${end.error ? ` (${end.error.message})` : ''}`);
  for (const record of toolCalls) sayCall(say, record, folded);
  for (const item of open?.calls ?? [])
    if ('name' in item) say(`call: ${item.name} ${item.status}`);
    else sayCall(say, item.record, folded);
  for (const item of pending) sayPending(say, item);
  const last = messages.at(-1);
  if (end !== undefined && last?.role === 'assistant' && last.content) say(`said: ${headOf(last.content)}`);
  return 0;
}

/** What is waited for. The lines of a description are indented, so that none looks like a line of this command. */
function sayPending(say: RunsCall['say'], pending: PendingCall): void {
  const { id, kind, tool, arguments: args, message, title, description, risk, approver, expiresAt } = pending;
  const parts = [id, kind, tool, JSON.stringify(args), message, title, risk && `risk: ${risk}`];
  const limits = [approver && `approver: ${approver}`, expiresAt && `until ${expiresAt}`];
  say(`waits: ${[...parts, ...limits].filter(Boolean).join(' ')}`);
  for (const line of description?.split('\n') ?? []) say(`  ${line}`);
}

/** What was called, what came of it, who answered what it waited for, and whether it was undone. */
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

/** A refused call may have been approved, and refused by a policy. */
function answeredAs(kind: PendingKind, status: CallStatus): string {
  if (kind === 'outcome') return 'outcome reported';
  return kind === 'approval' && status !== 'refused' ? 'approved' : 'answered';
}

const HEAD = 120;

/** `--json` has all of it. */
function headOf(text: string): string {
  return text.length <= HEAD ? text : `${text.slice(0, HEAD).toWellFormed()}…`;
}

/** Answers that stand for later calls, too. */
async function listApprovals({ store, options, say }: RunsCall): Promise<number> {
  const standing = await store.approvals.listApprovals();
  if (options.json) {
    for (const approval of standing) say(JSON.stringify(approval));
    return 0;
  }
  const rows = standing.map(({ id, tool, scope, subject = '', owner, pattern, answeredBy, expiresAt }) => [
    ...[id, tool, `${scope} ${subject}`.trim(), owner === undefined ? '' : JSON.stringify(owner)],
    ...[JSON.stringify(pattern), answeredBy === undefined ? '' : JSON.stringify(answeredBy)],
    expiresAt === undefined ? '' : new Date(expiresAt).toISOString(),
  ]);
  sayTable(say, [['approval', 'tool', 'for', 'owner', 'calls with', 'said by', 'until'], ...rows]);
  return 0;
}

async function revokeApproval({ store, named, say }: RunsCall): Promise<number> {
  const isRevoked = await store.approvals.revokeApproval(named);
  say(`${named}: ${isRevoked ? 'revoked' : 'it does not stand'}`);
  return isRevoked ? 0 : 1;
}

/** Prompts that enter conversations later. */
async function listSchedules({ store, options, say }: RunsCall): Promise<number> {
  const scheduled = await store.schedules.listSchedules({ limit: 1_000 });
  if (options.json) {
    for (const schedule of scheduled) say(JSON.stringify(schedule));
    return 0;
  }
  const rows = scheduled.map(({ id, conversationId, owner, timing, dueAt, text }) => [
    ...[id, conversationId, owner === undefined ? '' : JSON.stringify(owner)],
    ...[new Date(dueAt).toISOString(), timingOf(timing), JSON.stringify(text)],
  ]);
  sayTable(say, [['schedule', 'conversation', 'owner', 'due', 'again', 'text'], ...rows]);
  return 0;
}

function timingOf(timing: ScheduleTiming): string {
  if (timing.kind === 'once') return '';
  return timing.kind === 'every' ? `every ${timing.everyMs} ms` : `${timing.cron} ${timing.timeZone}`;
}

async function cancelSchedule({ store, named, say }: RunsCall): Promise<number> {
  const isCancelled = await store.schedules.cancelSchedule(named);
  say(`${named}: ${isCancelled ? 'cancelled' : 'there is no such schedule'}`);
  return isCancelled ? 0 : 1;
}

async function cancel({ store, named: runId, options, say }: RunsCall): Promise<number> {
  const { reason } = options;
  const isCancelled = await cancelRun({ store, runId, ...(reason === undefined ? {} : { reason }) });
  say(`${runId}: ${isCancelled ? 'cancelled' : 'it had ended before'}`);
  return isCancelled ? 0 : 1;
}

const UNKNOWN: readonly string[] = ['ask', 'error', 'rerun'];

async function recover({ store, named, options, say, surroundings }: RunsCall): Promise<number> {
  const onUnknown = options['on-unknown'] ?? 'ask';
  if (!UNKNOWN.includes(onUnknown))
    throw new UserFault(`--on-unknown is ${UNKNOWN.join(', ')}, not '${onUnknown}'`);
  const module = await openModule(named, surroundings.folder, 'operator');
  try {
    const { recovery = { config: configOfModule(named, module.exports) } } = module;
    const recovered = await recoverRuns({ store, ...recovery, onUnknown: onUnknown as 'ask' });
    for (const item of recovered)
      say(`${item.runId}: ${'result' in item ? item.result.status : errorMessage(item.error)}`);
    return recovered.every((item) => 'result' in item) ? 0 : 1;
  } finally {
    await module.close();
  }
}

async function readRun({ store, named: runId }: RunsCall): Promise<KeptRun> {
  const run = await store.read(runId);
  if (run === undefined) throw new UserFault(`the store has no run '${visibleLine(runId)}'`, 1);
  return run;
}

/** A longer cell moves what stands beside it, and nothing in other lines. */
const WIDEST = 40;

function sayTable(say: RunsCall['say'], given: readonly (readonly string[])[]): void {
  const rows = given.map((row) => row.map(visibleLine));
  const widths = (rows[0] ?? []).map((_, column) => {
    const lengths = rows.map((row) => row[column]?.length ?? 0);
    return Math.max(...lengths.filter((length) => length <= WIDEST));
  });
  for (const row of rows) {
    const cells = row.map((cell, column) => cell.padEnd(widths[column] ?? 0));
    say(cells.join('  ').trimEnd());
  }
}
