/* (A) What one validated call costs. */
import { timeCalls } from '../measure.mjs';
import { aiCall } from '../peers/ai-sdk.mjs';
import { validatorCall } from '../peers/class-validator.mjs';
import { bareCall, floorCall } from '../peers/floor.mjs';
import { langchainCall } from '../peers/langchain.mjs';
import { mastraCall } from '../peers/mastra.mjs';
import { nestCall } from '../peers/mcp-nest.mjs';
import { agentsCall } from '../peers/openai-agents.mjs';
import { strandsCall } from '../peers/strands.mjs';
import {
  ourAdditions,
  ourCall,
  ourDtoCall,
  ourInvokedCall,
  ourTextCall,
  ourZodCall,
} from '../peers/toolwright.mjs';
import { amount } from '../table.mjs';
import { verify, workloads } from '../workloads.mjs';

const CANDIDATES = [
  floorCall,
  bareCall,
  ourCall,
  ourInvokedCall,
  ourTextCall,
  ourZodCall,
  ourDtoCall,
  strandsCall,
  mastraCall,
  aiCall,
  agentsCall,
  langchainCall,
  nestCall,
  validatorCall,
];

/** µs per call of every candidate on every workload, with the ratio to the floor of the same run. */
export function measureCalls(options) {
  return measureCandidates({ title: 'One validated call, µs', candidates: CANDIDATES }, options);
}

/** The table of some candidates on every workload; ratios are to the first of them. */
export async function measureCandidates({ title, candidates }, options) {
  const timed = [];
  for (const load of workloads) timed.push(await measureWorkload(candidates, load, options));
  const [{ names }] = timed;
  const rows = names.map((name, index) => [
    name,
    ...timed.flatMap(({ times }) => [amount(times[index].time), amount(times[index].ratio)]),
    timed.every(({ refuses }) => refuses[index]) ? 'yes' : 'NO',
  ]);
  return {
    title,
    head: ['', ...workloads.flatMap(({ id }) => [id, '×']), 'refuses bad arguments'],
    rows,
  };
}

async function measureWorkload(creators, load, options) {
  const candidates = [];
  for (const create of creators) candidates.push(await create(load));
  const refuses = [];
  for (const candidate of candidates) refuses.push(await verify(candidate, load));
  const ready = candidates.map((candidate) => ({
    ...candidate,
    inputs: load.inputs.map((input) => candidate.encode(input)),
  }));
  const times = await timeCalls(ready, options);
  const names = candidates.map(({ name }) => name);
  return { names, refuses, times: names.map((name) => times.get(name)) };
}

/** What each thing that a call may need costs on W1, beside the plain call. */
export async function measureAdditions(options) {
  const [load] = workloads;
  const floor = floorCall(load);
  const candidates = [];
  for (const candidate of [floor, ...ourAdditions()]) {
    if (!(await verify(candidate, load))) throw new Error(`${candidate.name} refuses nothing`);
    const { isInUse = () => true } = candidate;
    if (isInUse()) candidates.push({ ...candidate, inputs: load.inputs });
  }
  const times = await timeCalls(candidates, options);
  const base = times.get('nothing added').ratio;
  const { time: unit } = times.get(floor.name);
  const rows = candidates.map(({ name }) => [
    name,
    amount(times.get(name).time),
    amount(times.get(name).ratio),
    name === floor.name ? '' : amount((times.get(name).ratio - base) * unit),
  ]);
  return {
    title: 'What is added to a call of W1, µs',
    head: ['', 'W1', '×', 'more than nothing added'],
    rows,
  };
}
