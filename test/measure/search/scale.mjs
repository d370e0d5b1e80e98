import { create, insertMultiple, search } from '@orama/orama';
import MiniSearch from 'minisearch';
import { ToolIndex } from '../../../dist/src/index.js';

const SIZES = [10_000, 100_000];
const QUERIES = 60;
/** Ten times as many tools may take so many times as long: what is linear, and noise. */
const LINEAR = 20;

/** Builds and asks an index of many tools, beside two general ones; gives what is not as it should be. */
export async function measureScale() {
  console.log('\ntools'.padEnd(10), 'index'.padEnd(12), 'building, ms'.padEnd(14), 'median of asking, ms');
  const faults = [];
  const times = new Map();
  for (const size of SIZES) {
    const tools = Array.from({ length: size }, (_, number) => madeTool(number));
    const queries = Array.from({ length: QUERIES }, (_, number) => madeQuery(number));
    const own = await measureOne(ownIndex, tools, queries);
    times.set(size, own);
    report(size, 'toolwright', own);
    for (const [name, make] of [
      ['minisearch', miniIndex],
      ['orama', oramaIndex],
    ]) {
      const other = await measureOne(make, tools, queries);
      report(size, name, other);
      if (other.building < own.building) faults.push(`${name} builds ${size} tools faster`);
      if (other.asking < own.asking) faults.push(`${name} is asked faster of ${size} tools`);
    }
  }
  const [small, large] = SIZES.map((size) => times.get(size));
  for (const what of ['building', 'asking']) {
    const growth = large[what] / small[what];
    console.log(`${what}: ${growth.toFixed(1)} times as long for ten times as many`);
    if (growth > LINEAR) faults.push(`${what} does not grow linearly`);
  }
  return faults;
}

function report(size, name, { building, asking }) {
  console.log(String(size).padEnd(9), name.padEnd(12), building.toFixed(0).padEnd(14), asking.toFixed(3));
}

async function measureOne(make, tools, queries) {
  const since = performance.now();
  const ask = await make(tools);
  const building = performance.now() - since;
  for (const query of queries.slice(0, 5)) await ask(query);
  const durations = [];
  for (const query of queries) {
    const begin = performance.now();
    const found = await ask(query);
    durations.push(performance.now() - begin);
    if (found === 0) throw new Error(`nothing was found for ${query}`);
  }
  durations.sort((one, other) => one - other);
  return { building, asking: durations[durations.length >> 1] };
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

function madeTool(number) {
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

function madeQuery(number) {
  const verb = VERBS[(number * 7) % VERBS.length];
  const thing = THINGS[(number * 11) % THINGS.length];
  const part = PARTS[(number * 5) % PARTS.length];
  return `Could you please ${verb} the ${part} of that ${thing} for me in service${number % 20}?`;
}
