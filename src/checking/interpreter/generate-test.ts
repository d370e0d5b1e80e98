import type { JsonSchema } from '../../contract/json-schema.js';
import { isSchemaNode } from '../../schema/keywords.js';
import { FITS, type Judge, literal, type Part, type Test, testOf } from './judge.js';
import { othersTest } from './object-keywords.js';
import { GROUPS, type Made, madeJudges, typesOf } from './schema-judge.js';

/** Makes parts of the keywords of a schema. */
type PartOf = (schema: JsonSchema, keyword: string) => Part;

/** Deeper schemas become functions of their own. */
const MAX_DEPTH = 8;
/** Objects with more properties are tested in a loop: large functions are never optimized. */
const MAX_PROPERTIES = 200;
/** More keys are looked up in a set. */
const MAX_COMPARED = 16;

/**
 * The test of a schema as one generated function. Types, properties, items and the keywords that have `code` are
 * written out; everything else is a call of a judge.
 */
export function writeTest(schema: JsonSchema, partOf: PartOf): Test {
  return new TestWriter(partOf).write(schema);
}

const TYPES: Readonly<Record<string, (value: string) => string>> = {
  number: (value) => `typeof ${value} === 'number' && Number.isFinite(${value})`,
  integer: (value) => `Number.isInteger(${value})`,
  array: (value) => `Array.isArray(${value})`,
  object: (value) => `typeof ${value} === 'object' && ${value} !== null && !Array.isArray(${value})`,
  null: (value) => `${value} === null`,
};

function typeCode(type: string, value: string): string {
  return TYPES[type]?.(value) ?? `typeof ${value} === ${literal(type)}`;
}

class TestWriter {
  readonly #partOf: PartOf;
  /** What the code refers to, as parameters of the function around it. */
  readonly #constants: unknown[] = [];
  #names = 0;

  constructor(partOf: PartOf) {
    this.#partOf = partOf;
  }

  write(schema: JsonSchema): Test {
    const code = this.#statements(schema, 'value', 0);
    const names = this.#constants.map((_, index) => `c${index}`);
    const make = new Function(...names, `'use strict'; return (value) => { ${code} return true; }`);
    return make(...this.#constants);
  }

  readonly #constant = (value: unknown): string => `c${this.#constants.push(value) - 1}`;

  #name(): string {
    this.#names += 1;
    return `v${this.#names}`;
  }

  /** Statements that return `false` if a value does not fit. */
  #statements(schema: unknown, value: string, depth: number): string {
    if (schema === false) return 'return false;';
    if (!isSchemaNode(schema)) return '';
    if (depth > MAX_DEPTH) return this.#refuseUnless(this.#partOf(schema, 'type').judgeOf(schema), value);
    const types = typesOf(schema);
    let isTypeTested = types.length === 0;
    let code = '';
    for (const [group, made] of madeJudges(schema, (keyword) => this.#partOf(schema, keyword))) {
      const { type } = GROUPS[group] ?? {};
      const isOnly = types.length === 1 && types[0] === type;
      isTypeTested ||= isOnly;
      const body = this.#group({ schema, made, value, depth, type });
      if (type === undefined) code += body;
      else if (isOnly) code += `if (!(${typeCode(type, value)})) return false; ${body}`;
      else if (body !== '') code += `if (${typeCode(type, value)}) { ${body} }`;
    }
    if (isTypeTested) return code;
    return `if (!(${types.map((type) => typeCode(type, value)).join(' || ')})) return false; ${code}`;
  }

  #group(of: {
    readonly schema: JsonSchema;
    readonly made: readonly Made[];
    readonly value: string;
    readonly depth: number;
    readonly type?: string;
  }): string {
    const { schema, made, value, depth, type } = of;
    const isWrittenOut = type === 'object' && isPlain(schema);
    let code = isWrittenOut ? this.#properties(schema, value, depth) : '';
    for (const [keyword, judge] of made) {
      if (isWrittenOut && WRITTEN_OUT.has(keyword)) continue;
      const { items, prefixItems } = schema;
      if (keyword === 'items' && isSchemaNode(items) && prefixItems === undefined) {
        const [index, item] = [this.#name(), this.#name()];
        code += `for (let ${index} = 0; ${index} < ${value}.length; ${index} += 1) {
          const ${item} = ${value}[${index}]; ${this.#statements(items, item, depth + 1)} }`;
      } else code += this.#refuseUnless(judge, value);
    }
    return code;
  }

  #properties(schema: JsonSchema, value: string, depth: number): string {
    const { properties = {}, required = [] } = schema;
    const listed = Object.keys(properties);
    let code = '';
    for (const name of new Set([...listed, ...required])) {
      const property = this.#name();
      const isListed = Object.hasOwn(properties, name);
      const body = isListed ? this.#statements(properties[name], property, depth + 1) : '';
      code += `const ${property} = ${value}[${literal(name)}];`;
      if (required.includes(name)) code += `if (${property} === undefined) return false; ${body}`;
      else if (body !== '') code += `if (${property} !== undefined) { ${body} }`;
    }
    return code + this.#others(schema, listed, value);
  }

  /** Keys that are not listed are tested by the interpreter, if there are any. */
  #others(schema: JsonSchema, listed: readonly string[], value: string): string {
    const { additionalProperties } = schema;
    if (additionalProperties === undefined) return '';
    const judge = this.#partOf(schema, 'additionalProperties').judgeOf(additionalProperties);
    const known = new Set(listed);
    const test = othersTest(known, judge);
    if (test === undefined) return '';
    const key = this.#name();
    const isOther =
      listed.length > MAX_COMPARED
        ? `!${this.#constant(known)}.has(${key})`
        : listed.map((name) => `${key} !== ${literal(name)}`).join(' && ') || 'true';
    return `for (const ${key} in ${value}) if (${isOther}) {
      if (!${this.#constant(test)}(${value})) return false; break; }`;
  }

  #refuseUnless(judge: Judge, value: string): string {
    if (judge === FITS) return '';
    const code = judge.code?.(value, this.#constant) ?? `${this.#constant(testOf(judge))}(${value})`;
    return `if (!(${code})) return false;`;
  }
}

const WRITTEN_OUT: ReadonlySet<string> = new Set(['properties', 'required', 'additionalProperties']);

/** Whether the properties of an object can be read one by one: no key is one that every object has. */
function isPlain({ properties = {}, required = [], patternProperties }: JsonSchema): boolean {
  const names = [...Object.keys(properties), ...required];
  return (
    patternProperties === undefined &&
    names.length <= MAX_PROPERTIES &&
    names.every((name) => !(name in Object.prototype))
  );
}
