import type { InboxContent } from '../contract/conversation-log.js';
import type { Message } from '../contract/llm-provider.js';
import type { RunState } from '../contract/run-state.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { resumeWith } from '../loop/resume.js';
import { isSameOwner } from '../loop/run-owner.js';
import { saveAskedAnew } from '../loop/stored-run.js';
import { messagesBefore } from './conversation-view.js';
import type { ConversationsConfig, ConversationsStore, NextTurn } from './conversations-options.js';

type Checking = Pick<Partial<ConversationsConfig>, 'tools' | 'stateSecret' | 'logger'>;

/** Answers before they enter a conversation. */
interface EnteringAnswers {
  readonly conversationId: string;
  readonly content: Extract<InboxContent, { readonly kind: 'answers' }>;
  readonly store: ConversationsStore;
  /** With what edited arguments and what is to be remembered are checked; without tools, the turn checks them. */
  readonly config: Checking | ((turn: NextTurn) => Checking | Promise<Checking>);
}

/**
 * Refuses at once what could only be refused later; what changes until then is told as `answers-refused`.
 *
 * @throws ToolwrightError `InvalidAnswer` (514), `RunNotAllowed` (523).
 */
export async function checkAnswers(entering: EnteringAnswers): Promise<void> {
  const { conversationId, content, store } = entering;
  const { answers, owner } = content;
  const kept = await store.conversations.read(conversationId);
  const turn = kept?.turn;
  const run = turn && (await store.load(turn.runId));
  if (kept === undefined || turn === undefined || run === undefined)
    throw new ToolwrightError('InvalidAnswer', `Conversation '${conversationId}' waits for no answer.`);
  if (!isSameOwner(turn.entry.content.owner, owner))
    throw new ToolwrightError('RunNotAllowed', 'The answers were not taken: the turn has another owner.');
  const ids = new Set(run.pending.map(({ id }) => id));
  const unknown = answers.filter((answer) => !ids.has(answer?.id)).map((answer) => `'${answer?.id}'`);
  if (unknown.length > 0 || answers.length === 0) {
    const waits = [...ids].map((id) => `'${id}'`).join(', ');
    const wrong =
      answers.length === 0
        ? 'No answer was given'
        : `The conversation does not wait for ${unknown.join(', ')}`;
    const message = `${wrong}; it waits for ${waits}.`;
    throw new ToolwrightError('InvalidAnswer', message);
  }
  await tryAnswers(entering, { run, messages: messagesBefore(kept, turn.entry.content) });
}

/** Answers of an operator to a turn that waits. */
interface OperatorAnswers extends Pick<EnteringAnswers, 'conversationId' | 'content' | 'store'> {
  readonly runId: string;
}

/**
 * Enters answers of an operator. The key is that of the (first) question: of two answers, one enters, whoever gave it.
 * One that was refused in the conversation may be given again. `check` throws where the run waits for them no more.
 *
 * @throws ToolwrightError `InvalidAnswer` (514) where somebody was quicker.
 */
export async function enterAnswers(
  { conversationId, content, store, runId }: OperatorAnswers,
  check: () => Promise<void>,
): Promise<void> {
  const ids = content.answers.map((answer) => answer?.id);
  for (let count = 1; ; count += 1) {
    const kept = await store.conversations.read(conversationId);
    for (const { content: before } of kept?.inbox ?? []) {
      const same = before.kind === 'answers' && before.answers.find((answer) => ids.includes(answer?.id));
      if (same) throw answeredBefore(`${runId} waits for no answer to '${same.id}'`, before.answeredBy);
    }
    // After the inbox: answers leave it when the run has them.
    await check();
    const key = `answer ${count} to ${ids[0]}`;
    if ((await store.conversations.enter({ conversationId, key, content }))?.isNew) return;
  }
}

function answeredBefore(what: string, answeredBy: unknown): ToolwrightError {
  const by = answeredBy === undefined ? '' : `, by ${JSON.stringify(answeredBy)}`;
  return new ToolwrightError('InvalidAnswer', `${what}: it was answered already${by}`);
}

/** Answers as the run would take them: their form, what the question asks for, and what their tools say of edits. */
async function tryAnswers(
  { conversationId, content: { answers, owner, answeredBy }, config, store }: EnteringAnswers,
  { run, messages }: { readonly run: RunState; readonly messages: readonly Message[] },
): Promise<void> {
  const owned = owner === undefined ? {} : { owner };
  const scope = { ...owned, conversationId };
  const trial = { answers, answeredBy, scope, isCertain: true, isTrial: true };
  if (!answers.some((answer) => 'approved' in answer && answer.approved)) {
    await unlessUnreadable(() => resumeWith({}, run, trial));
    return;
  }
  const next = { conversationId, ...owned, messages };
  const isForTools = answers.some((answer) => 'arguments' in answer || 'remember' in answer);
  const giving = typeof config === 'function' ? Promise.resolve(next).then(config) : Promise.resolve(config);
  // Where the application cannot give its tools now, the turn checks the approval.
  const { tools, stateSecret, logger } = await (isForTools ? giving : giving.catch((): Checking => ({})));
  try {
    await unlessUnreadable(() => resumeWith({ tools, stateSecret, store, logger }, run, trial));
  } catch (error) {
    await saveAskedAnew(store, error, stateSecret);
    throw error;
  }
}

/** A state of another version is for the process that takes the turn. */
async function unlessUnreadable(attempt: () => unknown): Promise<void> {
  try {
    await attempt();
  } catch (error) {
    if (!ToolwrightError.is(error) || error.name !== 'InvalidState') throw error;
  }
}
