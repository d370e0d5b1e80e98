import { create, insertMultiple, search } from '@orama/orama';
import MiniSearch from 'minisearch';
import { ToolIndex } from '../../../dist/src/index.js';

const SIZES = [10_000, 100_000];
const QUERIES = 60;
/** Maximum growth of the time for ten times as many tools: 10 is linear, the rest is noise. */
const MAX_GROWTH = 20;

/** Measures building and searching an index of many tools, compared with two general libraries; returns the faults. */
export async function measureScale() {
  console.log('\ntools'.padEnd(10), 'index'.padEnd(12), 'building, ms'.padEnd(14), 'median search, ms');
  const faults = [];
  const times = new Map();
  for (const size of SIZES) {
    const tools = Array.from({ length: size }, (_, number) => createTool(number));
    const queries = Array.from({ length: QUERIES }, (_, number) => createQuery(number));
    const own = await measureIndex(ownIndex, tools, queries);
    times.set(size, own);
    report(size, 'toolwright', own);
    for (const [name, createIndex] of [
      ['minisearch', miniIndex],
      ['orama', oramaIndex],
    ]) {
      const other = await measureIndex(createIndex, tools, queries);
      report(size, name, other);
      if (other.building < own.building) faults.push(`${name} indexes ${size} tools faster`);
      if (other.searching < own.searching) faults.push(`${name} searches ${size} tools faster`);
    }
  }
  const [small, large] = SIZES.map((size) => times.get(size));
  for (const phase of ['building', 'searching']) {
    const growth = large[phase] / small[phase];
    console.log(`${phase}: ${growth.toFixed(1)} times as long for ten times as many tools`);
    if (growth > MAX_GROWTH) faults.push(`the time of ${phase} does not grow linearly`);
  }
  return faults;
}

function report(size, name, { building, searching }) {
  console.log(String(size).padEnd(9), name.padEnd(12), building.toFixed(0).padEnd(14), searching.toFixed(3));
}

async function measureIndex(createIndex, tools, queries) {
  const startedAt = performance.now();
  const searchIndex = await createIndex(tools);
  const building = performance.now() - startedAt;
  for (const query of queries.slice(0, 5)) await searchIndex(query);
  const durations = [];
  for (const query of queries) {
    const searchStartedAt = performance.now();
    const found = await searchIndex(query);
    durations.push(performance.now() - searchStartedAt);
    if (found === 0) throw new Error(`no tool was found for ${query}`);
  }
  durations.sort((a, b) => a - b);
  return { building, searching: durations[durations.length >> 1] };
}

function ownIndex(tools) {
  const index = new ToolIndex();
  for (const tool of tools) index.add(tool);
  return (query) => index.search(query).length;
}

function textOf({ parameters: { properties } }) {
  return Object.entries(properties)
    .map(([name, { description }]) => `${name.replace(/_/g, ' ')} ${description}`)
    .join(' ');
}

function documentOf(tool) {
  const { name, description } = tool;
  return { id: name, name: name.replace(/_/g, ' '), description, parameters: textOf(tool) };
}

function miniIndex(tools) {
  const index = new MiniSearch({ fields: ['name', 'description', 'parameters'] });
  index.addAll(tools.map(documentOf));
  return (query) => index.search(query, { boost: { name: 2.5 } }).slice(0, 5).length;
}

async function oramaIndex(tools) {
  const index = create({
    schema: { id: 'string', name: 'string', description: 'string', parameters: 'string' },
  });
  await insertMultiple(index, tools.map(documentOf), 1_000);
  const properties = ['name', 'description', 'parameters'];
  return async (term) => (await search(index, { term, properties, limit: 5, boost: { name: 2.5 } })).count;
}

const VERBS = 'create list update delete find export import archive share approve cancel schedule'.split(' ');
const THINGS = (
  'invoice order customer ticket report meeting contract shipment product payment refund campaign lead account device ' +
  'sensor alert backup image document folder message channel branch pipeline deployment release survey coupon vendor'
).split(' ');
const PARTS =
  'address status owner history comment label region currency deadline priority summary template'.split(' ');

function createTool(number) {
  const verb = VERBS[number % VERBS.length];
  const thing = THINGS[Math.floor(number / VERBS.length) % THINGS.length];
  const part = PARTS[Math.floor(number / (VERBS.length * THINGS.length)) % PARTS.length];
  const service = `service${Math.floor(number / 500)}`;
  return {
    name: `${service}_${verb}_${thing}_${part}_${number}`,
    description: `Lets you ${verb} the ${part} of a ${thing} in ${service}, with all that belongs to it.`,
    parameters: {
      type: 'object',
      properties: {
        [`${thing}_id`]: { type: 'string', description: `Which ${thing} it is about` },
        [part]: { type: 'string', description: `The ${part} to ${verb}` },
        dry_run: { type: 'boolean', description: 'Whether nothing is to be changed yet' },
      },
      required: [],
    },
  };
}

function createQuery(number) {
  const verb = VERBS[(number * 7) % VERBS.length];
  const thing = THINGS[(number * 11) % THINGS.length];
  const part = PARTS[(number * 5) % PARTS.length];
  return `Could you please ${verb} the ${part} of that ${thing} for me in service${number % 20}?`;
}
