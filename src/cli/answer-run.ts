import { setTimeout as pause } from 'node:timers/promises';
import type { parseArgs } from 'node:util';
import { hasSameForm, letsCallRun } from '../call/waits.js';
import type { Answer, ApprovalAnswer } from '../contract/call.js';
import type { InboxContent } from '../contract/conversation-log.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { KeptRun } from '../contract/run-checkpoint.js';
import type { RememberScope } from '../contract/standing-approvals.js';
import { checkAnswers, enterAnswers } from '../conversation/check-answers.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { isRecord } from '../kernel/json.js';
import { visibleLine } from '../kernel/visible-text.js';
import { type FoldedRun, foldRun } from '../loop/fold-run.js';
import type { ToolLoopConfig } from '../loop/options.js';
import { answerStoredRun } from '../loop/stored-run.js';
import { type CommandSurroundings, UserFault } from './command.js';
import { configOfModule, type OpenModule, openModule, registryOfModule } from './open-module.js';
import type { OpenStore } from './open-store.js';

/** What an answer is made from. */
export const ANSWER_OPTIONS = {
  to: { type: 'string' },
  approve: { type: 'boolean' },
  refuse: { type: 'boolean' },
  arguments: { type: 'string' },
  remember: { type: 'string' },
  until: { type: 'string' },
  module: { type: 'string' },
  value: { type: 'string' },
  result: { type: 'string' },
  done: { type: 'string' },
  'not-done': { type: 'boolean' },
  reason: { type: 'string' },
  by: { type: 'string' },
} as const;

type AnswerOptions = ReturnType<typeof parseArgs<{ options: typeof ANSWER_OPTIONS }>>['values'];

/** A run, and what is said to it. */
interface AnswerCall {
  readonly store: OpenStore;
  readonly run: KeptRun;
  readonly options: AnswerOptions;
  readonly say: (line: string) => void;
  readonly surroundings: CommandSurroundings;
}

/** `toolwright runs answer`: of several who answer the same question, the first is taken, and the others are told so. */
export async function answerRun(call: AnswerCall): Promise<number> {
  const { store, options, run } = call;
  const { runId, state } = run;
  const id = questionOf(run, options.to);
  const answers = [answerOf(id, options)];
  const { owner } = state;
  const isNumber = typeof owner === 'number' && /^\d+$/.test(options.by ?? '');
  const answeredBy =
    options.by === undefined ? undefined : isNumber ? Number(options.by) : personOf(options.by);
  if (letsCallRun(answers[0] as Answer)) checkPerson({ ...run, id, answeredBy }, options);
  const said = {
    ...(answeredBy === undefined ? {} : { answeredBy }),
    ...(owner === undefined ? {} : { owner }),
  };
  const conversationId = await conversationOf(store, runId);
  const module = await checkingModule(call);
  try {
    return await enter(
      { ...call, id, conversationId, content: { kind: 'answers', answers, ...said } },
      module,
    );
  } finally {
    await module?.close();
  }
}

/** Who is named with `--by`: a name, or the JSON that the application takes for somebody. */
export function personOf(text: string): unknown {
  return text.startsWith('{') ? objectOf('--by', text) : text;
}

/** Whoever approves a call, or lets it run again, whose tool says who may has to say who they are. */
function checkPerson(
  { state, id, answeredBy }: KeptRun & Said & { readonly id: string },
  { module }: AnswerOptions,
): void {
  const { tool, approver } = ('pending' in state ? state.pending : []).find((asked) => asked.id === id) ?? {};
  if (approver === undefined) return;
  if (answeredBy === undefined)
    throw new UserFault(`'${tool}' is not approved by everybody: --by says who answers, --by clerk7`);
  if (approver === 'not-the-owner' && !hasSameForm(answeredBy, state.owner))
    throw new UserFault(
      `the owner of this run is ${JSON.stringify(state.owner)}: give --by in the same form`,
    );
  if (approver === 'function' && module === undefined)
    throw new UserFault(
      `'${tool}' itself decides who may approve it: --module dist/worker.js, which exports the config of the runs, or a NestJS module`,
    );
}

/** An answer that was read, and where it goes. */
interface EnteringAnswer extends AnswerCall, Pick<Question, 'id'> {
  readonly conversationId: string | undefined;
  readonly content: Extract<InboxContent, { readonly kind: 'answers' }>;
}

async function enter(
  { store, say, run: { runId }, id, conversationId, content }: EnteringAnswer,
  checking: CheckingModule | undefined,
): Promise<number> {
  const tools = checking?.tools === undefined ? {} : { tools: checking.tools };
  if (conversationId !== undefined) {
    const checkStillWaits = async () => {
      const now = await store.read(runId);
      if (now !== undefined) checkWaits(now, id);
    };
    try {
      await checkAnswers({ conversationId, content, store, config: tools });
    } catch (error) {
      // Somebody else was quicker, and a server may have taken their answer already: the run says who it was.
      await checkStillWaits();
      throw error;
    }
    await enterAnswers({ runId, conversationId, content, store }, checkStillWaits);
    say(`${id}: the answer is in the inbox of conversation ${conversationId}`);
    return 0;
  }
  const { kind: _, answers, ...said } = content;
  const answer = () => answerStoredRun({ store, runId }, answers, { ...said, ...tools });
  const left = await answerInTurn({ store, runId, id }, answer);
  const rest =
    left.length === 0
      ? 'a worker goes on with it'
      : `it still waits for ${left.map((item) => item.id).join(', ')}`;
  say(`${runId}: ${rest}`);
  return 0;
}

/** The id of what is answered. */
function questionOf(run: KeptRun, to: string | undefined): string {
  const [only, ...others] = questionsOf(run);
  if (to === undefined && others.length > 0)
    throw new UserFault(
      `the run waits for several answers: --to one of ${[only, ...others].join(', ')}; runs show ${run.runId} says what they are`,
    );
  const id = to ?? only ?? '';
  checkWaits(run, id);
  return id;
}

function questionsOf({ state }: KeptRun): readonly string[] {
  return 'pending' in state ? state.pending.map(({ id }) => id) : [];
}

/** Throws where the run does not wait for that answer; who gave the last one is told. */
function checkWaits(run: KeptRun, id: string): void {
  const questions = questionsOf(run);
  if (questions.includes(id)) return;
  const others = questions.map((question) => `'${question}'`).join(', ');
  const waits = others === '' ? 'waits for no answer' : `does not wait for '${id}', but for ${others}`;
  const folded = foldRun(run);
  const { end } = folded;
  const answered = lastAnswer(folded);
  const isUnderWay = run.status === 'running' && answered === undefined;
  const why = [
    ...(end === undefined ? [] : [`it has ended (${end.status})`]),
    ...(isUnderWay ? ['it is under way'] : []),
    ...(answered === undefined ? [] : [`it was answered already${by(answered)}`]),
  ];
  const told = [waits, ...(why.length > 0 ? [why.join('; ')] : [])].join(': ');
  throw new UserFault(visibleLine(`${run.runId} ${told}`), 1);
}

/** Who said something, where that is known. */
interface Said {
  readonly answeredBy?: unknown;
}

function by({ answeredBy }: Said): string {
  return answeredBy === undefined ? '' : `, the last time by ${JSON.stringify(answeredBy)}`;
}

/** The last answer that is known of; without a name where nobody gave one and the calls have not gone on yet. */
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

/** What is answered, and where. */
interface Question {
  readonly store: OpenStore;
  readonly runId: string;
  readonly id: string;
}

/** Others hold a run for as long as it takes to keep their answer; or until it ends. */
const PATIENCE_MS = 3_000;
const PAUSE_MS = 50;

/** Answers as soon as nobody else does, unless they have answered the same. */
async function answerInTurn<Left>(question: Question, answer: () => Promise<Left>): Promise<Left> {
  const { store, runId, id } = question;
  for (const since = performance.now(); ; await pause(PAUSE_MS)) {
    try {
      return await answer();
    } catch (error) {
      const run = await store.read(runId);
      if (run !== undefined) checkWaits(run, id);
      const isClaimed = ToolwrightError.is(error) && error.name === 'RunClaimed';
      if (!isClaimed || performance.now() - since > PATIENCE_MS) throw error;
    }
  }
}

/** The conversation whose open turn has this run: runs of conversations have its id and a number. */
async function conversationOf(store: OpenStore, runId: string): Promise<string | undefined> {
  const conversationId = runId.replace(/\.\d+$/, '');
  const kept = conversationId === runId ? undefined : await store.conversations.read(conversationId);
  return kept?.turn?.runId === runId ? conversationId : undefined;
}

/** A module whose tools check who approves what, edited arguments, and what may be remembered. */
interface CheckingModule extends Pick<OpenModule, 'close'> {
  readonly tools: ToolLoopConfig['tools'];
}

/** That with the config of the runs, or the application that they are of. */
async function checkingModule({ options, surroundings }: AnswerCall): Promise<CheckingModule | undefined> {
  const { approve, arguments: edited, remember, module: named } = options;
  if (named !== undefined && !approve && !options['not-done'])
    throw new UserFault('--module goes with --approve and --not-done');
  if (named === undefined && edited === undefined && remember === undefined) return undefined;
  const option = edited === undefined ? '--remember is' : '--arguments are';
  if (named === undefined)
    throw new UserFault(
      `${option} checked by the tool: --module dist/worker.js, which exports the config of the runs, or a NestJS module`,
    );
  const { exports, nestModule, close } = await openModule(named, surroundings.folder, 'operator');
  if (nestModule === undefined) return { tools: configOfModule(named, exports).tools, close };
  return { tools: registryOfModule(exports), close };
}

function answerOf(id: string, options: AnswerOptions): Answer {
  const { approve, refuse, value, result, done, reason, arguments: edited } = options;
  const edits = edited === undefined ? {} : { arguments: objectOf('--arguments', edited) };
  if (edited !== undefined && !approve) throw new UserFault('--arguments go with --approve');
  if (reason !== undefined && !refuse) throw new UserFault('--reason goes with --refuse');
  const stands = rememberOf(options);
  const given: Answer[] = [
    ...(approve ? [{ id, approved: true, ...edits, ...stands }] : []),
    ...(refuse ? [{ id, approved: false, ...(reason === undefined ? {} : { reason }) }] : []),
    ...(value === undefined ? [] : [{ id, value: json('--value', value) }]),
    ...(result === undefined ? [] : [{ id, result: json('--result', result) }]),
    ...(done === undefined ? [] : [{ id, outcome: 'done' as const, result: json('--done', done) }]),
    ...(options['not-done'] ? [{ id, outcome: 'not-done' as const }] : []),
  ];
  const [answer, second] = given;
  if (answer !== undefined && second === undefined) return answer;
  throw new UserFault('an answer is one of --approve, --refuse, --value, --result, --done, --not-done');
}

const SCOPES: readonly string[] = ['run', 'conversation', 'user'];

/** For which later calls a yes is to stand. */
function rememberOf({ approve, remember: scope, until }: AnswerOptions): Pick<ApprovalAnswer, 'remember'> {
  if (scope === undefined) {
    if (until !== undefined) throw new UserFault('--until goes with --remember');
    return {};
  }
  if (!approve) throw new UserFault('--remember goes with --approve');
  if (!SCOPES.includes(scope)) throw new UserFault(`--remember is ${SCOPES.join(', ')}, not '${scope}'`);
  if (until !== undefined && Number.isNaN(Date.parse(until)))
    throw new UserFault(`--until is a time: --until 2027-01-01T00:00:00Z, not '${until}'`);
  const expires = until === undefined ? {} : { expires: new Date(until).toISOString() };
  return { remember: { scope: scope as RememberScope, ...expires } };
}

function objectOf(option: string, text: string): JsonObject {
  const value = json(option, text);
  if (isRecord(value)) return value;
  throw new UserFault(`${option} is a JSON object: ${option} '{"amount":40}', not '${text}'`);
}

function json(option: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UserFault(`${option} is JSON: ${option} '"yes"', not '${text}'`);
  }
}
