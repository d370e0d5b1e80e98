/*
 * Compares this build with the build of another checkout: `npm run bench -- --beside DIR`. Each build has its own
 * process, and the two alternate in short rounds, so that other load affects both. The figure of a process is the lower
 * quartile of its CPU times. There are several pairs, because processes differ in what the engine has compiled.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { median, quantile } from './measure.mjs';
import { formatNumber } from './table.mjs';

const CHILD = join(import.meta.dirname, 'children', 'beside.mjs');
const OWN_BUILD = join(import.meta.dirname, '..', '..', 'dist');

const TIMES = [
  ['run-10', 'run of 10 turns, per turn'],
  ['run-200', 'run of 200 turns, per turn'],
  ['run-2000', 'run of 2,000 turns, per turn'],
  ['wide', 'turn with ten calls'],
  ['async-10', 'run of 10 turns with an async method, per turn'],
  ['async-wide', 'turn with ten calls of an async method'],
  ['streamed', 'streamed run of 10 turns, per turn'],
  ['W1', 'W1, method'],
  ['W2', 'W2, method'],
  ['W3', 'W3, method'],
];

const SIZES = [
  ['history', 'result of a finished run'],
  ['running', 'run in progress'],
  ['state', 'state of a suspended run as JSON'],
  ['snapshot', 'stored conversation as JSON'],
];

/** Returns tables of the time and the memory of both builds; `only` selects rows. */
export async function measureBeside(directory, { quick, only }) {
  const theirs = join(resolve(directory), 'dist');
  if (!existsSync(join(theirs, 'src', 'index.js')))
    throw new Error(`${directory} contains no built package; run \`npm run build\` there first.`);
  const known = [...TIMES, ...SIZES].map(([id]) => id);
  const unknown = only.filter((id) => !known.includes(id));
  if (unknown.length > 0)
    throw new Error(`unknown row ${unknown.join(', ')}; the rows are ${known.join(', ')}`);
  const isSelected = ([id]) => only.length === 0 || only.includes(id);
  const builds = [theirs, OWN_BUILD];
  const limits = quick ? { pairs: 2, rounds: 20 } : { pairs: 9, rounds: 60 };
  const times = [];
  for (const [id, name] of TIMES.filter(isSelected))
    times.push(timesRow(name, await timePairs(builds, id, limits)));
  const sizes = [];
  for (const [id, name] of SIZES.filter(isSelected)) sizes.push(sizesRow(name, await sizesOf(builds, id)));
  return [
    {
      title: `Compared with the build in ${directory}, µs of CPU time`,
      head: ['', 'other build', 'this build', '×', 'lower quartile', 'upper quartile'],
      rows: times,
    },
    { title: 'Compared memory of a turn, bytes', head: ['', 'other build', 'this build', '×'], rows: sizes },
  ].filter(({ rows }) => rows.length > 0);
}

function timesRow(name, pairs) {
  const ratios = pairs.map(([theirs, ours]) => ours / theirs);
  return [
    name,
    ...[0, 1].map((side) => formatNumber(median(pairs.map((pair) => pair[side])))),
    ...[median(ratios), quantile(ratios, 0.25), quantile(ratios, 0.75)].map(formatNumber),
  ];
}

function sizesRow(name, [theirs, ours]) {
  return [name, formatNumber(theirs), formatNumber(ours), formatNumber(ours / theirs)];
}

/** Returns the microseconds of both builds for each pair of processes. */
async function timePairs(builds, id, { pairs, rounds }) {
  const timed = [];
  for (let pair = 0; pair < pairs; pair += 1) {
    const processes = await startProcesses(builds, id);
    const times = processes.map(() => []);
    for (let round = 0; round < rounds; round += 1)
      for (const side of round % 2 === 0 ? [0, 1] : [1, 0])
        times[side].push(await requestFigure(processes[side]));
    end(processes);
    timed.push(times.map((all) => quantile(all, 0.25)));
  }
  return timed;
}

async function sizesOf(builds, id) {
  const processes = await startProcesses(builds, id);
  const sizes = [];
  for (const child of processes) sizes.push(await requestFigure(child));
  end(processes);
  return sizes;
}

/** Starts the processes one after another, because a process that warms up slows the other. */
async function startProcesses(builds, id) {
  const processes = [];
  for (const build of builds) {
    const child = fork(CHILD, [build, id], { execArgv: ['--expose-gc', '--single-threaded-gc'] });
    await receiveMessage(child);
    processes.push(child);
  }
  return processes;
}

function requestFigure(child) {
  child.send('go');
  return receiveMessage(child);
}

async function receiveMessage(child) {
  const abortOnExit = new AbortController();
  const onExit = (code) =>
    abortOnExit.abort(new Error(`the process of ${child.spawnargs.at(-2)} exited with code ${code}`));
  child.once('exit', onExit);
  const [message] = await once(child, 'message', { signal: abortOnExit.signal });
  child.off('exit', onExit);
  return message;
}

function end(processes) {
  for (const child of processes) child.disconnect();
}
