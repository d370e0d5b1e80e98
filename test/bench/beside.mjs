/*
 * Measures this build beside another one: `npm run bench -- --beside DIR`, DIR being a checkout with its `dist`.
 * Each build has a process of its own; the two take turns in short rounds, so that what the machine does meanwhile hits
 * both. What counts is the processor's time, and of a process's rounds the lower quartile: nothing makes a round
 * too fast. Processes differ by what the engine happened to compile, so there are several pairs.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { median, quantile } from './measure.mjs';
import { amount } from './table.mjs';

const CHILD = join(import.meta.dirname, 'children', 'beside.mjs');
const OURS = join(import.meta.dirname, '..', '..', 'dist');

const TIMES = [
  ['run-10', 'a run of 10 turns, a turn'],
  ['run-200', 'a run of 200 turns, a turn'],
  ['run-2000', 'a run of 2,000 turns, a turn'],
  ['wide', 'a turn with ten calls'],
  ['async-10', 'a run of 10 turns of an async method, a turn'],
  ['async-wide', 'a turn with ten calls of an async method'],
  ['streamed', 'a streamed run of 10 turns, a turn'],
  ['W1', 'W1, a method'],
  ['W2', 'W2, a method'],
  ['W3', 'W3, a method'],
];

const SIZES = [
  ['history', 'a finished run’s result'],
  ['running', 'a run that goes on'],
  ['state', 'the state of a suspended run, as JSON'],
  ['snapshot', 'the snapshot of a conversation, as JSON'],
];

/** Two tables: time and memory of this build beside the one in `directory`; `only` names rows. */
export async function measureBeside(directory, { quick, only }) {
  const theirs = join(resolve(directory), 'dist');
  if (!existsSync(join(theirs, 'src', 'index.js')))
    throw new Error(`There is no built package in ${directory}: run \`npm run build\` there first.`);
  const known = [...TIMES, ...SIZES].map(([id]) => id);
  const unknown = only.filter((id) => !known.includes(id));
  if (unknown.length > 0)
    throw new Error(`there is no row ${unknown.join(', ')}; there are ${known.join(', ')}`);
  const isMeant = ([id]) => only.length === 0 || only.includes(id);
  const builds = [theirs, OURS];
  const limits = quick ? { pairs: 2, rounds: 20 } : { pairs: 9, rounds: 60 };
  const times = [];
  for (const [id, name] of TIMES.filter(isMeant))
    times.push(timesRow(name, await timePairs(builds, id, limits)));
  const sizes = [];
  for (const [id, name] of SIZES.filter(isMeant)) sizes.push(sizesRow(name, await sizesOf(builds, id)));
  return [
    {
      title: `Beside the build in ${directory}, µs of processor time`,
      head: ['', 'that build', 'this build', '×', 'half of the pairs from', 'to'],
      rows: times,
    },
    { title: 'The same for a stored turn, bytes', head: ['', 'that build', 'this build', '×'], rows: sizes },
  ].filter(({ rows }) => rows.length > 0);
}

function timesRow(name, pairs) {
  const ratios = pairs.map(([theirs, ours]) => ours / theirs);
  return [
    name,
    ...[0, 1].map((side) => amount(median(pairs.map((pair) => pair[side])))),
    ...[median(ratios), quantile(ratios, 0.25), quantile(ratios, 0.75)].map(amount),
  ];
}

function sizesRow(name, [theirs, ours]) {
  return [name, amount(theirs), amount(ours), amount(ours / theirs)];
}

/** Microseconds of both builds, pair by pair of processes. */
async function timePairs(builds, id, { pairs, rounds }) {
  const timed = [];
  for (let pair = 0; pair < pairs; pair += 1) {
    const processes = await started(builds, id);
    const times = processes.map(() => []);
    for (let round = 0; round < rounds; round += 1)
      for (const side of round % 2 === 0 ? [0, 1] : [1, 0]) times[side].push(await answered(processes[side]));
    end(processes);
    timed.push(times.map((all) => quantile(all, 0.25)));
  }
  return timed;
}

async function sizesOf(builds, id) {
  const processes = await started(builds, id);
  const sizes = [];
  for (const child of processes) sizes.push(await answered(child));
  end(processes);
  return sizes;
}

/** One after the other: a process that warms up would slow the one that is measured. */
async function started(builds, id) {
  const processes = [];
  for (const build of builds) {
    const child = fork(CHILD, [build, id], { execArgv: ['--expose-gc', '--single-threaded-gc'] });
    await heard(child);
    processes.push(child);
  }
  return processes;
}

function answered(child) {
  child.send('go');
  return heard(child);
}

async function heard(child) {
  const ended = new AbortController();
  const onExit = (code) =>
    ended.abort(new Error(`the process of ${child.spawnargs.at(-2)} ended with ${code}`));
  child.once('exit', onExit);
  const [message] = await once(child, 'message', { signal: ended.signal });
  child.off('exit', onExit);
  return message;
}

function end(processes) {
  for (const child of processes) child.disconnect();
}
