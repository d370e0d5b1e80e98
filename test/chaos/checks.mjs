// The checks at the end of a chaos run; each returns a list of faults.
import { historyFaults } from '../flow/strict-history.ts';
import { PROMPTS, promptOf } from './driver.mjs';

const COMPLETION = '[System: async:report]';
const CALLS = ['look_up0', 'pay0', 'report0', 'ship1', 'look_up1'];
const MAY_REPEAT = /look_up|report/;

/** Returns counts and, for each check, a list of faults. */
export async function checkRun({ store, ids, bank, approvals, engine, deadJobs }) {
  const faults = { ended: [], answered: [], effects: [], completions: [], claimed: [] };
  const counts = { takeovers: 0, turns: 0, calls: 0, completions: 0, repeated: 0 };
  const effects = effectsByCall(bank.effects);
  for (const id of ids) {
    const conversation = await store.conversations.read(id);
    if (conversation === undefined) {
      faults.ended.push(`${id} is not stored`);
      continue;
    }
    counts.turns += conversation.turns;
    faults.ended.push(...endFaults(conversation));
    faults.answered.push(...(await answerFaults(conversation, store)));
    faults.completions.push(...completionFaults(conversation, { engine, counts }));
    if (conversation.isHeld) faults.claimed.push(`${id} is claimed`);
    for (const prompt of PROMPTS)
      for (const name of CALLS) {
        counts.calls += 1;
        const call = `${promptOf(id, prompt)}/${name}`;
        faults.effects.push(...effectFaults(call, { effects, bank, approvals, counts, engine }));
      }
    counts.takeovers += await countTakeovers(conversation, store);
  }
  faults.claimed.push(...(await claimFaults(store, deadJobs)));
  return { faults, counts };
}

/** Returns the ids of conversations with an open turn or a waiting inbox item. */
export async function unfinishedConversations(store, ids) {
  const conversations = await Promise.all(ids.map((id) => store.conversations.read(id)));
  return conversations
    .filter((conversation) => conversation && (conversation.turn || conversation.inbox.length > 0))
    .map(({ conversationId }) => conversationId);
}

function effectsByCall(effects) {
  const calls = new Map();
  for (const [key, { call, times }] of effects) calls.set(call, [...(calls.get(call) ?? []), { key, times }]);
  return calls;
}

function endFaults({ conversationId: id, turn, inbox, messages }) {
  const prompts = messages
    .filter(({ role, content }) => role === 'user' && !content.startsWith(COMPLETION))
    .map(({ content }) => content);
  const expected = PROMPTS.map((prompt) => promptOf(id, prompt));
  return [
    ...(turn ? [`${id}: turn ${turn.number} is open`] : []),
    ...inbox.map(({ key }) => `${id}: '${key}' waits in the inbox`),
    ...(prompts.join() === expected.join() ? [] : [`${id}: has the prompts ${prompts}`]),
  ];
}

async function answerFaults({ conversationId: id, messages, turns }, store) {
  const faults = historyFaults(messages).map((fault) => `${id}: ${fault}`);
  const answers = messages.filter(({ role }) => role === 'tool').length;
  if (answers !== PROMPTS.length * CALLS.length) faults.push(`${id}: has ${answers} answers`);
  const replies = messages.filter(({ role, content }) => role === 'assistant' && content).length;
  if (replies !== turns) faults.push(`${id}: ${turns} turns have ${replies} replies`);
  return [...faults, ...(await eventFaults(id, turns, store))];
}

/** Events are numbered without gaps and report each turn and the result of each call exactly once. */
async function eventFaults(id, turns, { conversations }) {
  const counts = new Map();
  const faults = [];
  const ended = new Set();
  let step = 0;
  let last = 0;
  for (;;) {
    const page = await conversations.events({ conversationId: id, after: last, limit: 500 });
    if (page.length === 0) break;
    for (const { number, event } of page) {
      if (number !== last + 1) return [`${id}: event ${number} follows ${last}`];
      last = number;
      counts.set(event.type, (counts.get(event.type) ?? 0) + 1);
      if (event.type === 'step-start') step = event.iteration;
      // The model reuses call ids in each step.
      if (event.type === 'call-end') ended.add(`${counts.get('turn-start')}.${step}.${event.callId}`);
      if (event.type === 'turn-end' && event.status !== 'completed')
        faults.push(
          `${id}: turn ${event.turn.number} ended as ${event.status}: ${JSON.stringify(event.error)}`,
        );
    }
  }
  const miscounted = ['turn-start', 'turn-end'].filter((type) => counts.get(type) !== turns);
  const ends = counts.get('call-end') ?? 0;
  if (ends !== PROMPTS.length * CALLS.length || ended.size !== ends)
    faults.push(`${id}: ${ends} 'call-end' events for ${ended.size} calls`);
  return [
    ...faults,
    ...miscounted.map((type) => `${id}: ${counts.get(type) ?? 0} '${type}' events in ${turns} turns`),
  ];
}

/** Each completion enters its conversation once. Without an engine, a task that dies with its process has none. */
function completionFaults({ conversationId: id, messages }, { engine, counts }) {
  const completions = messages.filter(
    ({ role, content }) => role === 'user' && content.startsWith(COMPLETION),
  );
  counts.completions += completions.length;
  return PROMPTS.flatMap((prompt) => {
    const call = `${promptOf(id, prompt)}/report0`;
    const times = completions.filter(({ content }) => content.includes(call)).length;
    return times === 1 || (times === 0 && engine === 'none')
      ? []
      : [`${call}: has ${times} completions; ${describeAnswer(call, messages)}`];
  });
}

function describeAnswer(call, messages) {
  for (const [index, { tool_calls: calls = [] }] of messages.entries()) {
    const toolCall = calls.find(({ function: { arguments: args } }) => JSON.parse(args).call === call);
    if (toolCall === undefined) continue;
    const answer = messages.slice(index).find(({ tool_call_id: id }) => id === toolCall.id);
    return `the call was answered with '${answer?.content}'`;
  }
  return 'the call was never made';
}

/** A call has one key and is repeated only if that is allowed. */
function effectFaults(call, { effects, bank, approvals, counts, engine }) {
  const [effect, ...others] = effects.get(call) ?? [];
  if (others.length > 0) return [`${call}: was executed under ${others.length + 1} keys`];
  if (call.endsWith('ship1') && approvals.get(call) !== true)
    return effect ? [`${call}: was executed without approval`] : [];
  // Without an engine, the task of a killed process is lost.
  if (effect === undefined)
    return engine === 'none' && call.endsWith('report0') ? [] : [`${call}: was not executed`];
  counts.repeated += effect.times - 1;
  const allowed = MAY_REPEAT.test(call) ? Number.POSITIVE_INFINITY : 1 + (bank.allowedRetries.get(call) ?? 0);
  return effect.times > allowed ? [`${call}: was executed ${effect.times} times, ${allowed} allowed`] : [];
}

/** Counts how often runs were claimed again: to continue with answers, or after their process died. */
async function countTakeovers({ conversationId, turns }, store) {
  let takeovers = 0;
  for (let number = 1; number <= turns; number += 1) {
    const run = await store.read(`${conversationId}.${number}`);
    takeovers += Math.max(0, (run?.generation ?? 1) - 1);
  }
  return takeovers;
}

/** Everything the store contains about the conversations with faults, for debugging. */
export async function storedRecords(faults, { store, ids }) {
  const texts = Object.values(faults).flat();
  const found = [];
  for (const id of ids.filter((each) => texts.some((text) => new RegExp(`\\b${each}\\b`).test(text)))) {
    const conversation = await store.conversations.read(id);
    const events = await store.conversations.events({ conversationId: id, after: 0, limit: 1000 });
    const runs = [];
    for (let number = 1; number <= conversation.turns; number += 1)
      runs.push(await store.read(`${id}.${number}`));
    found.push({ conversation, events, runs });
  }
  return found;
}

async function claimFaults(store, deadJobs) {
  const faults = [];
  for (const status of ['running', 'suspended']) {
    const { runs } = await store.list({ status });
    faults.push(...runs.map(({ runId }) => `run ${runId} is ${status}`));
  }
  for (const status of ['waiting', 'running']) {
    const { jobs } = await store.jobs.listJobs({ status });
    for (const { job, attempt } of jobs) {
      const deadReason = deadJobs.get(job.id);
      const suffix = deadReason === undefined ? '' : `; the engine stopped retrying it: ${deadReason}`;
      faults.push(`job ${job.id} is ${status}, attempt ${attempt}${suffix}`);
    }
  }
  return faults;
}
