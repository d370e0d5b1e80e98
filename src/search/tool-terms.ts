import type { JsonSchema } from '../contract/json-schema.js';
import { isRecord } from '../kernel/json.js';
import { addTerms } from './terms.js';

/** What of a tool is looked into. */
export interface SearchedTool {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: JsonSchema;
  /** The toolset or the server that it belongs to, where that says something. */
  readonly namespace?: string;
}

/** How much a word counts in one part of a tool, and how much less in a long one. */
interface Field {
  readonly weight: number;
  /** From 0, where the length does not matter, to 1. */
  readonly lengthWeight: number;
  /** The length of an ordinary one, in words. A constant, so that no tool counts otherwise because of another. */
  readonly ordinary: number;
}

const FIELDS = {
  name: { weight: 2.5, lengthWeight: 0.15, ordinary: 3 },
  namespace: { weight: 0.6, lengthWeight: 0.3, ordinary: 2 },
  description: { weight: 1, lengthWeight: 0.6, ordinary: 10 },
  parameters: { weight: 0.7, lengthWeight: 0.75, ordinary: 5 },
  parameterTexts: { weight: 0.5, lengthWeight: 0.75, ordinary: 20 },
  values: { weight: 0.8, lengthWeight: 0.75, ordinary: 4 },
} as const satisfies Readonly<Record<string, Field>>;

type FieldName = keyof typeof FIELDS;

/** Where a word stops to count for more however often it stands there. */
const SATURATION = 1.2;

/** The words of a tool, and how much each of them says of it: from 0 to 1. */
interface ToolTerms {
  readonly terms: readonly string[];
  readonly impacts: readonly number[];
}

/** What the words of a tool say of it. It depends on this tool alone. */
export function toolTerms(tool: SearchedTool): ToolTerms {
  const texts = textsOf(tool);
  const weights = new Map<string, number>();
  for (const field of FIELD_NAMES) addField(weights, texts[field], FIELDS[field]);
  const terms: string[] = [];
  const impacts: number[] = [];
  for (const [term, weight] of weights) {
    terms.push(term);
    impacts.push(weight / (SATURATION + weight));
  }
  return { terms, impacts };
}

const FIELD_NAMES = Object.keys(FIELDS) as readonly FieldName[];

function addField(weights: Map<string, number>, texts: readonly string[], field: Field): void {
  if (texts.length === 0) return;
  const terms: string[] = [];
  for (const text of texts) addTerms(text, terms);
  const { weight, lengthWeight, ordinary } = field;
  const worth = weight / (1 - lengthWeight + (lengthWeight * terms.length) / ordinary);
  for (const term of terms) weights.set(term, (weights.get(term) ?? 0) + worth);
}

type Texts = Readonly<Record<FieldName, string[]>>;

function textsOf({ name, description = '', parameters, namespace }: SearchedTool): Texts {
  const texts: Texts = {
    name: [name],
    namespace: namespace === undefined ? [] : [namespace],
    description: [description],
    parameters: [],
    parameterTexts: [],
    values: [],
  };
  if (parameters !== undefined) collect(parameters, texts, 0);
  return texts;
}

/** Schemas of foreign servers may be as deep, and have as many values, as they like. */
const MAX_DEPTH = 6;
const MAX_VALUES = 50;

function collect(schema: unknown, texts: Texts, depth: number): void {
  if (!isRecord(schema) || depth > MAX_DEPTH) return;
  const { properties, items, enum: values, $defs } = schema;
  for (const [key, property] of isRecord(properties) ? Object.entries(properties) : []) {
    texts.parameters.push(key);
    collectDescribed(property, texts, depth);
  }
  for (const definition of isRecord($defs) ? Object.values($defs) : [])
    collectDescribed(definition, texts, depth);
  for (const value of Array.isArray(values) ? values.slice(0, MAX_VALUES) : [])
    if (typeof value === 'string') texts.values.push(value);
  if (items !== undefined) collectDescribed(items, texts, depth);
  for (const key of ['anyOf', 'oneOf', 'allOf']) {
    const branches = schema[key];
    for (const branch of Array.isArray(branches) ? branches : []) collectDescribed(branch, texts, depth);
  }
}

function collectDescribed(schema: unknown, texts: Texts, depth: number): void {
  if (!isRecord(schema)) return;
  if (typeof schema.description === 'string') texts.parameterTexts.push(schema.description);
  collect(schema, texts, depth + 1);
}
