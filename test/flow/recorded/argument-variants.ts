import type { Seeded } from './seeded.js';

type Path = readonly (string | number)[];

const ODD_VALUES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  1,
  -1,
  1.5,
  1e21,
  '',
  ' ',
  '5',
  '5.0',
  ' 7 ',
  'true',
  'null',
  'odd',
  '2030-01-01',
  '2030-02-30T00:00:00Z',
  'yesterday',
  [],
  {},
  [null],
  [[]],
  [{}],
  ['a', 'a'],
  ['5'],
  { a: 1 },
  { constructor: 1 },
  '{"a":1}',
  '["a","b"]',
  '[1,2',
  'a,b',
  'ä😀',
  Number.MAX_SAFE_INTEGER + 2,
  'x'.repeat(300),
];

const EXTRA_KEYS = ['extra', 'constructor', 'toString', '__proto__', 'hasOwnProperty', 'Limit', 'note ', ''];

const SURROUNDINGS: readonly ((text: string) => string)[] = [
  (text) => JSON.stringify(text),
  (text) => JSON.stringify(JSON.stringify(text)),
  (text) => `\`\`\`json\n${text}\n\`\`\``,
  (text) => `Sure, here are the arguments: ${text}`,
  (text) => `${text}\nThat is all.`,
  (text) => `\uFEFF  ${text}\n`,
  (text) => text.replace(/}$/, ',}'),
  (text) => text.replace(/}$/, ''),
  (text) => text.replace(/^{/, ''),
  (text) => text.replaceAll('"', "'"),
  (text) => text.replaceAll('"', '”'),
  (text) => text.replaceAll(/"(\w+)":/g, '$1:'),
  (text) => text.replaceAll(/"(\w+)":/g, '"$1"='),
  (text) => text.replace('{', '{ /* what is meant */ '),
  (text) => text.replaceAll('true', 'True').replaceAll('null', 'None'),
  (text) => text.replace(/,/, ' '),
  (text) => `${text}${text}`,
  (text) => `${text} {}`,
  (text) => `[${text}]`,
  (text) => `${text}}`,
  (text) => text.replaceAll(/(\d)(?=[,}\]])/g, '$1,'),
  (text) => text.replaceAll(/"([^"]*)"(?=[,}\]])/g, '"$1\n"'),
  (text) => text.replace(/:\d+/, ':12345678901234567890'),
  (text) => text.replace(/:\d+/, ':1e400'),
  (text) => `{"arguments":${text}}`,
  (text) => `{"input":${text}}`,
];

/** Valid arguments, and variants that models send instead: objects and texts without duplicates. */
export function variantsOf(right: readonly object[], random: Seeded, count: number): unknown[] {
  const variants: unknown[] = [...right, ...right.slice(0, 1).map((args) => JSON.stringify(args))];
  const known = new Set(variants.map(keyOf));
  for (let tries = 0; variants.length < count && tries < count * 8; tries += 1) {
    const variant = variantOf(random.pick(right), random);
    const key = keyOf(variant);
    if (known.has(key)) continue;
    known.add(key);
    variants.push(variant);
  }
  return variants;
}

function variantOf(right: object, random: Seeded): unknown {
  if (random.chance(0.03)) return random.pick<unknown>(['', 'null', '[]', '{}', {}, null, 7, 'no', [], '"']);
  let value: unknown = structuredClone(right);
  const changes = random.pick([1, 1, 1, 2, 3]);
  const isText = random.chance(0.3);
  if (!isText || random.chance(0.3))
    for (let change = 0; change < changes; change += 1) value = changed(value, random);
  if (!isText) return value;
  const text = JSON.stringify(value);
  if (random.chance(0.25)) return text.slice(0, random.below(text.length));
  const wrapped = random.pick(SURROUNDINGS)(text);
  return random.chance(0.15) ? random.pick(SURROUNDINGS)(wrapped) : wrapped;
}

/** A copy with one change at a random place. */
function changed(value: unknown, random: Seeded): unknown {
  const place = random.pick(placesIn(value));
  const kind = random.below(12);
  if (place.length === 0 || kind === 0) return withKey(value, random);
  const last = String(place.at(-1));
  const here = at(value, place);
  const parent = at(value, place.slice(0, -1));
  if (kind < 3 && isObject(parent))
    return renamed(value, place, kind === 1 ? undefined : slipOf(last, random));
  if (kind < 6) return replaced(value, place, recast(here, random));
  return replaced(value, place, random.pick(ODD_VALUES));
}

function withKey(value: unknown, random: Seeded): unknown {
  if (!isObject(value)) return { value };
  const entries = [...Object.entries(value), [random.pick(EXTRA_KEYS), random.pick(ODD_VALUES)] as const];
  return Object.fromEntries(entries);
}

/** The same value in another form, as models write it. */
function recast(here: unknown, random: Seeded): unknown {
  if (random.chance(0.2)) return [here];
  if (typeof here === 'object' && here !== null) return JSON.stringify(here);
  if (typeof here === 'number')
    return random.pick<unknown>([
      String(here),
      here + 0.5,
      -here,
      here * 1000,
      `${here}.0`,
      `${here} pieces`,
    ]);
  if (typeof here === 'boolean')
    return random.pick<unknown>([String(here), Number(here), here ? 'yes' : 'no', 'TRUE']);
  if (typeof here !== 'string') return String(here);
  return random.pick<unknown>([
    here.toUpperCase(),
    ` ${here}`,
    `${here}!`,
    here.slice(0, 1),
    '',
    here.length,
    { value: here },
    here.split(''),
  ]);
}

function slipOf(key: string, random: Seeded): string {
  const cut = random.below(key.length);
  return random.pick([
    key.slice(0, cut) + key.slice(cut + 1),
    key.slice(0, cut) + key.slice(cut, cut + 1).repeat(2) + key.slice(cut + 1),
    key.toUpperCase(),
    key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    `${key}_`,
    `my_${key}`,
  ]);
}

function renamed(value: unknown, place: Path, name: string | undefined): unknown {
  const [key, ...rest] = place;
  if (rest.length > 0)
    return replaced(value, [key as string], renamed(at(value, [key as string]), rest, name));
  const entries = Object.entries(value as object).flatMap(([known, part]) => {
    if (known !== key) return [[known, part] as const];
    return name === undefined ? [] : [[name, part] as const];
  });
  return Object.fromEntries(entries);
}

function replaced(value: unknown, [key, ...rest]: Path, by: unknown): unknown {
  if (key === undefined) return by;
  const inner = replaced(at(value, [key]), rest, by);
  if (Array.isArray(value)) return value.map((item, index) => (index === key ? inner : item));
  return Object.fromEntries(
    Object.entries(value as object).map(([known, part]) => [known, known === key ? inner : part]),
  );
}

function placesIn(value: unknown, above: Path = []): Path[] {
  if (Array.isArray(value))
    return [above, ...value.flatMap((item, index) => placesIn(item, [...above, index]))];
  if (!isObject(value)) return [above];
  return [above, ...Object.entries(value).flatMap(([key, part]) => placesIn(part, [...above, key]))];
}

function at(value: unknown, place: Path): unknown {
  return place.reduce<unknown>(
    (inner, key) => (inner as Readonly<Record<string | number, unknown>>)[key],
    value,
  );
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function keyOf(variant: unknown): string {
  return `${typeof variant} ${JSON.stringify(variant)}`;
}
