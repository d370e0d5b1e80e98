// Prompts the conversations of a chaos run, answers at random what they wait for, and waits until they are done.
import { setTimeout as pause } from 'node:timers/promises';
import { ToolwrightError } from '../../dist/src/index.js';

export const PROMPTS = ['1', '2'];
const LOOK_AGAIN_MS = 100;

export const promptOf = (conversationId, prompt) => `${conversationId}/${prompt}`;

/** Puts the prompts of a conversation in, each of them twice: the second changes nothing. */
export async function promptTwice(id, { front, errors, signal }) {
  for (const prompt of [...PROMPTS, ...PROMPTS])
    if (!signal.aborted) await insist(errors, () => front.prompt(id, promptOf(id, prompt), { key: prompt }));
}

/** Resolves when a conversation has had so many turns and nothing is left to be done. */
export async function driveConversation(id, run) {
  const { signal, turnsOf } = run;
  while (!signal.aborted) {
    const view = await look(id, run);
    if (view?.status === 'suspended') await answerAll(id, view.pending, run);
    else if (view?.status === 'idle' && view.turns >= turnsOf) return;
    else await pause(LOOK_AGAIN_MS);
  }
}

/** Resolves when nothing is left to be done in a conversation. */
export const untilIdle = (id, run) => driveConversation(id, { ...run, turnsOf: 0 });

async function look(id, { front, signal, errors }) {
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
  const answers = pending.map((waiting) => answerOf(waiting, run));
  try {
    await insist(errors, () => front.answer(id, answers, { key }), signal);
  } catch (error) {
    // It was answered a moment before, or its process ended with the answer.
    if (!ToolwrightError.is(error) || error.name !== 'InvalidAnswer') throw error;
    await pause(LOOK_AGAIN_MS);
  }
}

/** Of an approval the same for the same call, however often it is asked; of an outcome what the other system knows. */
function answerOf({ id, kind, arguments: { call } }, { approvals, random, bank, counts }) {
  if (kind === 'approval') {
    if (!approvals.has(call)) approvals.set(call, random.chance(0.7));
    return { id, approved: approvals.get(call) };
  }
  counts.outcomes += 1;
  if (bank.isDone(call)) return { id, outcome: 'done', result: 'done before' };
  bank.allowAgain(call);
  return { id, outcome: 'not-done' };
}

/** As a client does: again until the service is back. */
async function insist(errors, work, signal) {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (ToolwrightError.is(error) || signal?.aborted) throw error;
      errors.push(error);
      await pause(LOOK_AGAIN_MS);
    }
  }
}
