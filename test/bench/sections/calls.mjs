/* The cost of a validated call. */
import { timeCalls } from '../measure.mjs';
import { aiCall } from '../peers/ai-sdk.mjs';
import { baselineCall, baselineWithoutTextCall } from '../peers/baseline.mjs';
import { validatorCall } from '../peers/class-validator.mjs';
import { langchainCall } from '../peers/langchain.mjs';
import { mastraCall } from '../peers/mastra.mjs';
import { nestCall } from '../peers/mcp-nest.mjs';
import { agentsCall } from '../peers/openai-agents.mjs';
import { strandsCall } from '../peers/strands.mjs';
import {
  ownCall,
  ownDtoCall,
  ownInvokeCall,
  ownOptionCalls,
  ownTextCall,
  ownZodCall,
} from '../peers/toolwright.mjs';
import { formatNumber } from '../table.mjs';
import { verify, workloads } from '../workloads.mjs';

const CANDIDATES = [
  baselineCall,
  baselineWithoutTextCall,
  ownCall,
  ownInvokeCall,
  ownTextCall,
  ownZodCall,
  ownDtoCall,
  strandsCall,
  mastraCall,
  aiCall,
  agentsCall,
  langchainCall,
  nestCall,
  validatorCall,
];

/** µs per call of every candidate with every workload, and the ratio to the baseline of the same run. */
export function measureCalls(options) {
  return measureCandidates({ title: 'One validated call, µs', candidates: CANDIDATES }, options);
}

/** Returns a table of the candidates with every workload; ratios are to the first candidate. */
export async function measureCandidates({ title, candidates }, options) {
  const measured = [];
  for (const load of workloads) measured.push(await measureWorkload(candidates, load, options));
  const [{ names }] = measured;
  const rows = names.map((name, index) => [
    name,
    ...measured.flatMap(({ times }) => [formatNumber(times[index].time), formatNumber(times[index].ratio)]),
    measured.every(({ rejects }) => rejects[index]) ? 'yes' : 'NO',
  ]);
  return {
    title,
    head: ['', ...workloads.flatMap(({ id }) => [id, '×']), 'rejects invalid arguments'],
    rows,
  };
}

async function measureWorkload(creators, load, options) {
  const candidates = [];
  for (const create of creators) candidates.push(await create(load));
  const rejects = [];
  for (const candidate of candidates) rejects.push(await verify(candidate, load));
  const ready = candidates.map((candidate) => ({
    ...candidate,
    inputs: load.inputs.map((input) => candidate.encode(input)),
  }));
  const times = await timeCalls(ready, options);
  const names = candidates.map(({ name }) => name);
  return { names, rejects, times: names.map((name) => times.get(name)) };
}

/** The cost of each option of a call with W1, compared with the call without options. */
export async function measureOptions(options) {
  const [load] = workloads;
  const baseline = baselineCall(load);
  const candidates = [];
  for (const candidate of [baseline, ...ownOptionCalls()]) {
    if (!(await verify(candidate, load))) throw new Error(`${candidate.name} accepts invalid arguments`);
    const { isUsed = () => true } = candidate;
    if (isUsed()) candidates.push({ ...candidate, inputs: load.inputs });
  }
  const times = await timeCalls(candidates, options);
  const base = times.get('no options').ratio;
  const { time: unit } = times.get(baseline.name);
  const rows = candidates.map(({ name }) => [
    name,
    formatNumber(times.get(name).time),
    formatNumber(times.get(name).ratio),
    name === baseline.name ? '' : formatNumber((times.get(name).ratio - base) * unit),
  ]);
  return {
    title: 'Cost of options in a call of W1, µs',
    head: ['', 'W1', '×', 'additional cost'],
    rows,
  };
}
