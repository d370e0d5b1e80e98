/* The cost of a turn of the loop with a scripted model. */
import { aiLoop } from '../loops/ai-sdk.mjs';
import { handWrittenLoop } from '../loops/hand-written.mjs';
import { langchainLoop } from '../loops/langchain.mjs';
import { mastraLoop } from '../loops/mastra.mjs';
import { agentsLoop } from '../loops/openai-agents.mjs';
import { Script } from '../loops/script.mjs';
import { strandsLoop } from '../loops/strands.mjs';
import { LOOP_OPTIONS, toolwrightLoop } from '../loops/toolwright.mjs';
import { collectGarbage, median, rotated } from '../measure.mjs';
import { formatNumber, formatRatio } from '../table.mjs';

const CANDIDATES = [
  ['hand-written loop', handWrittenLoop],
  ['**toolwright** `runToolLoop`', toolwrightLoop],
  ['AI SDK `generateText`', aiLoop],
  ['Strands `agent.invoke`', strandsLoop],
  ['OpenAI Agents `runner.run`', agentsLoop],
  ['LangChain `createAgent`', langchainLoop],
  ['Mastra `agent.generate`', mastraLoop],
];

/* Turns are averaged over ten turns, because a turn can be shorter than the resolution of the clock. */
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
    ...[early, late].flatMap((times) => [formatNumber(times[index]), formatRatio(times[index], times[0])]),
    formatRatio(late[index], early[index]),
    formatNumber(wide[index]),
    formatRatio(wide[index], wide[0]),
  ]);
  return {
    title: 'One turn of the loop, µs',
    head: ['', 'turn 10', '×', 'turn 500', '×', '500 ÷ 10', 'turn with ten calls', '×'],
    rows,
  };
}

/** The cost of options that production uses, compared with a turn without options. */
export async function measureTurns(options) {
  const limits = limitsOf(options);
  const early = await timeTurns(LOOP_OPTIONS, EARLY, limits);
  const late = await timeTurns(LOOP_OPTIONS, LATE, limits);
  const rows = LOOP_OPTIONS.map(([name], index) => [
    name,
    ...[early, late].flatMap((times) => [formatNumber(times[index]), formatRatio(times[index], times[0])]),
    formatRatio(late[index], early[index]),
  ]);
  return {
    title: 'Cost of options in a turn of the loop, µs',
    head: ['', 'turn 10', '×', 'turn 500', '×', '500 ÷ 10'],
    rows,
  };
}

function limitsOf({ quick }) {
  return quick ? { rounds: 3, eachMs: 20, budgetMs: 1_500 } : { rounds: 9, eachMs: 100, budgetMs: 20_000 };
}

/** Returns the median time of the turns in the window for each candidate; slow candidates have fewer rounds. */
async function timeTurns(candidates, { turns, width, from }, { rounds, eachMs, budgetMs }) {
  const runs = candidates.map(([name, loop]) => ({ name, loop, times: [], spent: 0 }));
  for (let round = 0; round <= rounds; round += 1) {
    for (const run of rotated(runs, round)) {
      if (run.spent > budgetMs) continue;
      collectGarbage();
      const startedAt = performance.now();
      const times = [];
      while (performance.now() - startedAt < eachMs) {
        const marks = await marksOf(run, new Script(turns, width));
        times.push(((marks[from + WINDOW] - marks[from]) / WINDOW) * 1_000);
      }
      run.spent += performance.now() - startedAt;
      // The first round warms up, unless it used the whole budget.
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
