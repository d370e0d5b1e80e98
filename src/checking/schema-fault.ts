import { isRecord } from '../kernel/is-record.js';

/** The drafts that are told apart. */
export type Draft = '7' | '2020-12';

/** What a keyword's value must be: says what it is not, or looks into it. `undefined`: nothing is wrong. */
type KeywordRule = (value: unknown, draft: Draft, path: string) => string | undefined;

/**
 * What a meta-schema (draft 7 or 2020-12) would refuse in a schema: `properties.a.type must be …`. The validator's
 * own check has to compile the meta-schema first, which takes longer than everything else of a process's first call.
 */
export function schemaFault(schema: unknown, draft: Draft, path = ''): string | undefined {
  if (typeof schema === 'boolean') return undefined;
  if (!isRecord(schema)) return `${path === '' ? 'it' : path} must be an object or a boolean`;
  for (const [keyword, value] of Object.entries(schema)) {
    const rule = ruleOf(keyword, draft);
    const place = path === '' ? keyword : `${path}.${keyword}`;
    const fault = rule?.(value, draft, place);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function ruleOf(keyword: string, draft: Draft): KeywordRule | undefined {
  return RULES.get(keyword) ?? (draft === '2020-12' ? LATER_RULES : EARLIER_RULES).get(keyword);
}

const must =
  (what: string, accepts: (value: unknown) => boolean): KeywordRule =>
  (value, _draft, path) =>
    accepts(value) ? undefined : `${path} must be ${what}`;

const TYPES: ReadonlySet<unknown> = new Set([
  'array',
  'boolean',
  'integer',
  'null',
  'number',
  'object',
  'string',
]);

const text = must('a string', (value) => typeof value === 'string');
const truth = must('true or false', (value) => typeof value === 'boolean');
const number = must('a number', Number.isFinite);
const count = must('a whole number, 0 or more', (value) => Number.isInteger(value) && Number(value) >= 0);
const list = must('a list', Array.isArray);
const pattern = must('a regular expression', isPattern);
const type = must('a type or a list of different types', (value) =>
  Array.isArray(value)
    ? value.length > 0 && new Set(value).size === value.length && value.every((one) => TYPES.has(one))
    : TYPES.has(value),
);
const names = must('a list of different names', isNameList);

const schemas: KeywordRule = (value, draft, path) => {
  if (!Array.isArray(value) || value.length === 0) return `${path} must be a list of schemas`;
  return firstFault(value.entries(), draft, path);
};

const oneOrMore: KeywordRule = (value, draft, path) =>
  (Array.isArray(value) ? schemas : schemaFault)(value, draft, path);

const schemaMap: KeywordRule = (value, draft, path) =>
  isRecord(value) ? firstFault(Object.entries(value), draft, path) : `${path} must be an object of schemas`;

const patternMap: KeywordRule = (value, draft, path) => {
  const wrong = isRecord(value) ? Object.keys(value).find((key) => !isPattern(key)) : undefined;
  return wrong === undefined ? schemaMap(value, draft, path) : pattern(wrong, draft, `${path}.${wrong}`);
};

const dependencies: KeywordRule = (value, draft, path) => {
  if (!isRecord(value)) return `${path} must be an object`;
  const others = Object.entries(value).filter(([, needed]) => !isNameList(needed));
  return firstFault(others, draft, path);
};

const nameListMap = must(
  'an object of lists of names',
  (value) => isRecord(value) && Object.values(value).every(isNameList),
);

/** What both drafts know. */
const RULES: ReadonlyMap<string, KeywordRule> = new Map<string, KeywordRule>([
  ...byRule(schemaFault, ['additionalProperties', 'contains', 'propertyNames', 'if', 'then', 'else', 'not']),
  ...byRule(schemas, ['allOf', 'anyOf', 'oneOf']),
  ...byRule(schemaMap, ['properties', 'definitions']),
  ...byRule(text, ['$id', '$ref', '$schema', '$comment', 'title', 'description', 'format']),
  ...byRule(text, ['contentMediaType', 'contentEncoding']),
  ...byRule(number, ['maximum', 'minimum', 'exclusiveMaximum', 'exclusiveMinimum']),
  ...byRule(count, ['maxLength', 'minLength', 'maxItems', 'minItems', 'maxProperties', 'minProperties']),
  ...byRule(truth, ['uniqueItems', 'readOnly']),
  ...byRule(list, ['enum', 'examples']),
  ['patternProperties', patternMap],
  ['dependencies', dependencies],
  ['type', type],
  ['required', names],
  ['pattern', pattern],
  ['multipleOf', must('a number above 0', (value) => Number.isFinite(value) && Number(value) > 0)],
]);

const EARLIER_RULES: ReadonlyMap<string, KeywordRule> = new Map<string, KeywordRule>([
  ['items', oneOrMore],
  ['additionalItems', schemaFault],
]);

/** What came after draft 7, which takes no notice of it. */
const LATER_RULES: ReadonlyMap<string, KeywordRule> = new Map<string, KeywordRule>([
  ...byRule(schemaFault, ['items', 'unevaluatedItems', 'unevaluatedProperties', 'contentSchema']),
  ...byRule(schemaMap, ['$defs', 'dependentSchemas']),
  ...byRule(text, ['$anchor', '$dynamicRef', '$dynamicAnchor']),
  ...byRule(count, ['maxContains', 'minContains']),
  ...byRule(truth, ['deprecated', 'writeOnly']),
  ['prefixItems', schemas],
  ['dependentRequired', nameListMap],
]);

function byRule(rule: KeywordRule, keywords: readonly string[]): readonly (readonly [string, KeywordRule])[] {
  return keywords.map((keyword) => [keyword, rule] as const);
}

function firstFault(
  parts: Iterable<readonly [string | number, unknown]>,
  draft: Draft,
  path: string,
): string | undefined {
  for (const [key, part] of parts) {
    const fault = schemaFault(part, draft, `${path}.${key}`);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function isNameList(value: unknown): boolean {
  if (!Array.isArray(value) || new Set(value).size !== value.length) return false;
  return value.every((one) => typeof one === 'string');
}

/** With or without Unicode: older tools wrote patterns that do not parse with it. */
function isPattern(value: unknown): boolean {
  if (typeof value !== 'string') return false;
  try {
    new RegExp(value);
    return true;
  } catch {
    return false;
  }
}
