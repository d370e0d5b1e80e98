// What has to be true when a chaos run is over: each check gives what is wrong.
import { historyFaults } from '../flow/strict-history.ts';
import { PROMPTS, promptOf } from './driver.mjs';

const COMPLETION = '[System: async:report]';
const CALLS = ['look_up0', 'pay0', 'report0', 'ship1', 'look_up1'];
const MAY_REPEAT = /look_up|report/;

/** What came of a run, and what is wrong with it: lists by check. */
export async function checkRun({ store, ids, bank, approvals, engine, dead }) {
  const faults = { ended: [], answered: [], effects: [], completions: [], claimed: [] };
  const counts = { taken: 0, turns: 0, calls: 0, completions: 0, repeated: 0 };
  const effects = byCall(bank.effects);
  for (const id of ids) {
    const kept = await store.conversations.read(id);
    if (kept === undefined) {
      faults.ended.push(`${id} is not kept`);
      continue;
    }
    counts.turns += kept.turns;
    faults.ended.push(...openParts(kept));
    faults.answered.push(...(await unansweredOf(kept, store)));
    faults.completions.push(...completionFaults(kept, { engine, counts }));
    if (kept.isHeld) faults.claimed.push(`${id} is held`);
    for (const prompt of PROMPTS)
      for (const name of CALLS) {
        counts.calls += 1;
        const call = `${promptOf(id, prompt)}/${name}`;
        faults.effects.push(...effectFaults(call, { effects, bank, approvals, counts, engine }));
      }
    counts.taken += await takenOver(kept, store);
  }
  faults.claimed.push(...(await openRows(store, dead)));
  return { faults, counts };
}

/** Conversations in which something is left to be done. */
export async function waitsIn(store, ids) {
  const kept = await Promise.all(ids.map((id) => store.conversations.read(id)));
  return kept
    .filter((each) => each && (each.turn || each.inbox.length > 0))
    .map(({ conversationId }) => conversationId);
}

function byCall(effects) {
  const calls = new Map();
  for (const [key, { call, times }] of effects) calls.set(call, [...(calls.get(call) ?? []), { key, times }]);
  return calls;
}

function openParts({ conversationId: id, turn, inbox, messages }) {
  const prompts = messages
    .filter(({ role, content }) => role === 'user' && !content.startsWith(COMPLETION))
    .map(({ content }) => content);
  const expected = PROMPTS.map((prompt) => promptOf(id, prompt));
  return [
    ...(turn ? [`${id}: turn ${turn.number} is open`] : []),
    ...inbox.map(({ key }) => `${id}: '${key}' waits`),
    ...(prompts.join() === expected.join() ? [] : [`${id}: has the prompts ${prompts}`]),
  ];
}

async function unansweredOf({ conversationId: id, messages, turns }, store) {
  const faults = historyFaults(messages).map((fault) => `${id}: ${fault}`);
  const answers = messages.filter(({ role }) => role === 'tool').length;
  if (answers !== PROMPTS.length * CALLS.length) faults.push(`${id}: has ${answers} answers`);
  const said = messages.filter(({ role, content }) => role === 'assistant' && content).length;
  if (said !== turns) faults.push(`${id}: ${turns} turns have ${said} replies`);
  return [...faults, ...(await eventFaults(id, turns, store))];
}

/** Events are numbered without a gap, and tell each turn and what came of each call once. */
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
      // Models use ids again.
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
    faults.push(`${id}: tells ${ends} ends of ${ended.size} calls`);
  return [
    ...faults,
    ...miscounted.map((type) => `${id}: ${counts.get(type) ?? 0} times ${type} in ${turns} turns`),
  ];
}

/** Every completion is in its conversation once; without an engine, work dies with its process. */
function completionFaults({ conversationId: id, messages }, { engine, counts }) {
  const told = messages.filter(({ role, content }) => role === 'user' && content.startsWith(COMPLETION));
  counts.completions += told.length;
  return PROMPTS.flatMap((prompt) => {
    const call = `${promptOf(id, prompt)}/report0`;
    const times = told.filter(({ content }) => content.includes(call)).length;
    return times === 1 || (times === 0 && engine === 'none')
      ? []
      : [`${call}: has ${times} completions; ${answerTo(call, messages)}`];
  });
}

/** What the model was answered to a call that started work. */
function answerTo(call, messages) {
  for (const [index, { tool_calls: calls = [] }] of messages.entries()) {
    const made = calls.find(({ function: { arguments: args } }) => JSON.parse(args).call === call);
    if (made === undefined) continue;
    const answer = messages.slice(index).find(({ tool_call_id: id }) => id === made.id);
    return `the call was answered '${answer?.content}'`;
  }
  return 'the call was never made';
}

/** A call has one key, and is made again where that is allowed. */
function effectFaults(call, { effects, bank, approvals, counts, engine }) {
  const [effect, ...others] = effects.get(call) ?? [];
  if (others.length > 0) return [`${call}: was done under ${others.length + 1} keys`];
  if (call.endsWith('ship1') && approvals.get(call) !== true)
    return effect ? [`${call}: was done, and was not approved`] : [];
  // Started work that died with its process.
  if (effect === undefined)
    return engine === 'none' && call.endsWith('report0') ? [] : [`${call}: was not done`];
  counts.repeated += effect.times - 1;
  const allowed = MAY_REPEAT.test(call) ? Number.POSITIVE_INFINITY : 1 + (bank.allowedAgain.get(call) ?? 0);
  return effect.times > allowed ? [`${call}: was made ${effect.times} times, ${allowed} allowed`] : [];
}

/** How often runs of the conversation were claimed again: with answers, or from a process that had died. */
async function takenOver({ conversationId, turns }, store) {
  let taken = 0;
  for (let number = 1; number <= turns; number += 1) {
    const run = await store.read(`${conversationId}.${number}`);
    taken += Math.max(0, (run?.generation ?? 1) - 1);
  }
  return taken;
}

/** All that the store has of the conversations that faults name: for who looks for the cause. */
export async function keptOf(faults, { store, ids }) {
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

async function openRows(store, dead) {
  const faults = [];
  for (const status of ['running', 'suspended']) {
    const { runs } = await store.list({ status });
    faults.push(...runs.map(({ runId }) => `run ${runId} is ${status}`));
  }
  for (const status of ['waiting', 'running']) {
    const { jobs } = await store.jobs.listJobs({ status });
    for (const { job, attempt } of jobs) {
      const why = dead.has(job.id) ? `; the engine gave it up: ${dead.get(job.id)}` : '';
      faults.push(`job ${job.id} is ${status}, attempt ${attempt}${why}`);
    }
  }
  return faults;
}
