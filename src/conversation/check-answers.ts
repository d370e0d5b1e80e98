import { letsCallRun } from '../call/waits.js';
import type { InboxContent } from '../contract/conversation-log.js';
import type { Message } from '../contract/llm-provider.js';
import type { RunState } from '../contract/run-state.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { resumeWith } from '../loop/resume.js';
import { isSameOwner } from '../loop/run-owner.js';
import { saveAskedAnew } from '../loop/stored-run.js';
import type { ConversationsConfig, ConversationsStore, NextTurn } from './conversations-options.js';
import { messagesBefore } from './stored-turns.js';

/** With what edited arguments and what is to be remembered are checked. */
type CheckConfig = Pick<Partial<ConversationsConfig>, 'tools' | 'stateSecret' | 'logger'>;

/** Answers before they enter a conversation. */
interface EnteringAnswers {
  readonly conversationId: string;
  readonly content: Extract<InboxContent, { readonly kind: 'answers' }>;
  readonly store: ConversationsStore;
  /** Without tools, the turn checks edited arguments itself. */
  readonly config: CheckConfig | ((turn: NextTurn) => CheckConfig | Promise<CheckConfig>);
}

/**
 * Refuses at once what could only be refused later; what changes until then is reported as `answers-refused`.
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
  const ids = run.pending.map(({ id }) => id);
  const unknown = answers.flatMap((answer) => (ids.includes(answer?.id) ? [] : `'${answer?.id}'`));
  if (unknown.length > 0 || answers.length === 0) {
    const wrong =
      answers.length === 0
        ? 'No answer was given'
        : `The conversation does not wait for ${unknown.join(', ')}`;
    const waits = [...new Set(ids)].map((id) => `'${id}'`).join(', ');
    throw new ToolwrightError('InvalidAnswer', `${wrong}; it waits for ${waits}.`);
  }
  await tryAnswers(entering, { run, messages: messagesBefore(kept, turn.entry.content) });
}

/** Tries the answers as the run would take them: their form, what the question asks for, and edited arguments. */
async function tryAnswers(
  { conversationId, content: { answers, owner, answeredBy }, config, store }: EnteringAnswers,
  { run, messages }: { readonly run: RunState; readonly messages: readonly Message[] },
): Promise<void> {
  const owned = owner === undefined ? {} : { owner };
  const trial = { answers, answeredBy, scope: { ...owned, conversationId }, isCertain: true, isTrial: true };
  let checked: CheckConfig = {};
  if (answers.some(letsCallRun)) {
    const next = { conversationId, ...owned, messages };
    const loading =
      typeof config === 'function' ? Promise.resolve(next).then(config) : Promise.resolve(config);
    // If the application cannot give its tools now, the turn checks a plain approval.
    const needsTools = answers.some((answer) => 'arguments' in answer || 'remember' in answer);
    checked = await (needsTools ? loading : loading.catch((): CheckConfig => ({})));
  }
  try {
    await resumeWith({ ...checked, store }, run, trial);
  } catch (error) {
    // A state of another version is for the process that takes the turn.
    if (ToolwrightError.is(error) && error.name === 'InvalidState') return;
    await saveAskedAnew(store, error, checked.stateSecret);
    throw error;
  }
}

/** Answers of an operator to a turn that waits. */
interface OperatorAnswers extends Pick<EnteringAnswers, 'conversationId' | 'content' | 'store'> {
  readonly runId: string;
}

/**
 * Enters answers of an operator. The key is that of the (first) question: of two answers, one enters, whoever gave it.
 * One that was refused in the conversation may be given again. `check` throws if the run no longer waits for them.
 *
 * @throws ToolwrightError `InvalidAnswer` (514) if another answer was quicker.
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
      if (!same) continue;
      const by = before.answeredBy === undefined ? '' : `, by ${JSON.stringify(before.answeredBy)}`;
      const message = `${runId} waits for no answer to '${same.id}': it was answered already${by}`;
      throw new ToolwrightError('InvalidAnswer', message);
    }
    // After the inbox: answers leave it when the run has them.
    await check();
    const key = `answer ${count} to ${ids[0]}`;
    if ((await store.conversations.enter({ conversationId, key, content }))?.isNew) return;
  }
}
