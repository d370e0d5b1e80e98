/* (B) What one turn of the loop costs, with a model that answers from a script. */
import { aiLoop } from '../loops/ai-sdk.mjs';
import { handWrittenLoop } from '../loops/hand-written.mjs';
import { langchainLoop } from '../loops/langchain.mjs';
import { mastraLoop } from '../loops/mastra.mjs';
import { agentsLoop } from '../loops/openai-agents.mjs';
import { Script } from '../loops/script.mjs';
import { strandsLoop } from '../loops/strands.mjs';
import { LOOP_ADDITIONS, toolwrightLoop } from '../loops/toolwright.mjs';
import { collectGarbage, median, rotated } from '../measure.mjs';
import { amount, ratio } from '../table.mjs';

const CANDIDATES = [
  ['written by hand', handWrittenLoop],
  ['**toolwright** `runToolLoop`', toolwrightLoop],
  ['AI SDK `generateText`', aiLoop],
  ['Strands `agent.invoke`', strandsLoop],
  ['OpenAI Agents `runner.run`', agentsLoop],
  ['LangChain `createAgent`', langchainLoop],
  ['Mastra `agent.generate`', mastraLoop],
];

/* A window of ten turns around the one that is meant, for those that are shorter than the clock's grain. */
const WINDOW = 10;
const EARLY = { turns: 20, width: 1, from: 5 };
const LATE = { turns: 505, width: 1, from: 495 };
const WIDE = { turns: 20, width: 10, from: 5 };

/** µs per turn at turn 10 and at turn 500, and of a turn with ten calls. */
export async function measureLoop(options) {
  const limits = limitsOf(options);
  const early = await timeTurns(CANDIDATES, EARLY, limits);
  const late = await timeTurns(CANDIDATES, LATE, limits);
  const wide = await timeTurns(CANDIDATES, WIDE, limits);
  const rows = CANDIDATES.map(([name], index) => [
    name,
    ...[early, late].flatMap((times) => [amount(times[index]), ratio(times[index], times[0])]),
    ratio(late[index], early[index]),
    amount(wide[index]),
    ratio(wide[index], wide[0]),
  ]);
  return {
    title: 'One turn of the loop, µs',
    head: ['', 'turn 10', '×', 'turn 500', '×', '500 over 10', 'ten calls in one turn', '×'],
    rows,
  };
}

/** What a turn of our loop costs with what production adds to it, beside the plain turn. */
export async function measureTurns(options) {
  const limits = limitsOf(options);
  const early = await timeTurns(LOOP_ADDITIONS, EARLY, limits);
  const late = await timeTurns(LOOP_ADDITIONS, LATE, limits);
  const rows = LOOP_ADDITIONS.map(([name], index) => [
    name,
    ...[early, late].flatMap((times) => [amount(times[index]), ratio(times[index], times[0])]),
    ratio(late[index], early[index]),
  ]);
  return {
    title: 'What is added to a turn of the loop, µs',
    head: ['', 'turn 10', '×', 'turn 500', '×', '500 over 10'],
    rows,
  };
}

function limitsOf({ quick }) {
  return quick ? { rounds: 3, eachMs: 20, budgetMs: 1_500 } : { rounds: 9, eachMs: 100, budgetMs: 20_000 };
}

/** Medians of the turns in the window, by candidate; a slow candidate gets fewer rounds. */
async function timeTurns(candidates, { turns, width, from }, { rounds, eachMs, budgetMs }) {
  const runs = candidates.map(([name, loop]) => ({ name, loop, times: [], spent: 0 }));
  for (let round = 0; round <= rounds; round += 1) {
    for (const run of rotated(runs, round)) {
      if (run.spent > budgetMs) continue;
      collectGarbage();
      const since = performance.now();
      const times = [];
      while (performance.now() - since < eachMs) {
        const marks = await marksOf(run, new Script(turns, width));
        times.push(((marks[from + WINDOW] - marks[from]) / WINDOW) * 1_000);
      }
      run.spent += performance.now() - since;
      // The first round warms up, unless it has eaten the whole budget.
      if (round > 0 || run.spent > budgetMs) run.times.push(...times);
    }
  }
  return runs.map(({ times }) => median(times));
}

async function marksOf({ name, loop }, script) {
  const fault = script.faultOf(await loop(script));
  if (fault !== undefined) throw new Error(`${name}: ${fault}`);
  return script.marks;
}
