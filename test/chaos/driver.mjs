// Sends the prompts of a chaos run, answers pending calls at random, and waits until the conversations are idle.
import { setTimeout as pause } from 'node:timers/promises';
import { ToolwrightError } from '../../dist/src/index.js';

export const PROMPTS = ['1', '2'];
const RETRY_MS = 100;

export const promptOf = (conversationId, prompt) => `${conversationId}/${prompt}`;

/** Sends each prompt twice under the same key; the second must change nothing. */
export async function promptTwice(id, { front, errors, signal }) {
  for (const prompt of [...PROMPTS, ...PROMPTS])
    if (!signal.aborted)
      await retryOnFailure(errors, () => front.prompt(id, promptOf(id, prompt), { key: prompt }));
}

/** Resolves when a conversation is idle after at least `minTurns` turns. */
export async function driveConversation(id, run) {
  const { signal, minTurns } = run;
  while (!signal.aborted) {
    const view = await readView(id, run);
    if (view?.status === 'suspended') await answerAll(id, view.pending, run);
    else if (view?.status === 'idle' && view.turns >= minTurns) return;
    else await pause(RETRY_MS);
  }
}

/** Resolves when a conversation is idle. */
export const waitUntilIdle = (id, run) => driveConversation(id, { ...run, minTurns: 0 });

async function readView(id, { front, signal, errors }) {
  try {
    return await front.idle(id, { signal });
  } catch (error) {
    if (!signal.aborted) errors.push(error);
    return undefined;
  }
}

async function answerAll(id, pending, run) {
  const { front, errors, signal } = run;
  const key = crypto.randomUUID();
  const answers = pending.map((call) => createAnswer(call, run));
  try {
    await retryOnFailure(errors, () => front.answer(id, answers, { key }), signal);
  } catch (error) {
    // Another request answered it a moment before, or its process ended with the answer.
    if (!ToolwrightError.is(error) || error.name !== 'InvalidAnswer') throw error;
    await pause(RETRY_MS);
  }
}

/** Answers approvals of the same call the same way each time, and unknown outcomes with the state of the bank. */
function createAnswer({ id, kind, arguments: { call } }, { approvals, random, bank, counts }) {
  if (kind === 'approval') {
    if (!approvals.has(call)) approvals.set(call, random.chance(0.7));
    return { id, approved: approvals.get(call) };
  }
  counts.outcomes += 1;
  if (bank.isDone(call)) return { id, outcome: 'done', result: 'done before' };
  bank.allowRetry(call);
  return { id, outcome: 'not-done' };
}

/** Repeats a request, as a client does, until the service is back. */
async function retryOnFailure(errors, work, signal) {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (ToolwrightError.is(error) || signal?.aborted) throw error;
      errors.push(error);
      await pause(RETRY_MS);
    }
  }
}
