import { isDto, type RandomDto, type RandomProperty } from './random-dto.js';

/** A deliberate difference between the call and plain class-validator. */
export interface DtoDifference {
  readonly name: string;
  readonly reason: string;
}

/** Every deliberate difference from `plainToInstance` and `validate` with `whitelist`. */
export const DTO_DIFFERENCES = [
  {
    name: 'missing nested object',
    reason: 'the schema calls it required, and a method that reads its properties would crash',
  },
  {
    name: 'list for one nested object',
    reason: '@ValidateNested goes into whatever list comes; the declared type is one object',
  },
  {
    name: 'list as an item of a list of objects',
    reason: '@ValidateNested goes into lists of lists; the declared type is a list of objects',
  },
  {
    name: 'date in another form',
    reason: 'the model is offered `date-time`: numbers and loose texts would be read as some moment',
  },
  {
    name: 'null for an optional property',
    reason:
      'taken for absence where repairing is on, and refused where arguments are taken as they were sent',
  },
  { name: 'single value for a list', reason: 'rules with `each` alone take it; the declared type is a list' },
  { name: 'name of a numeric enum member', reason: 'the reverse mapping is not a value of the enum' },
  { name: 'nested without @ValidateNested', reason: 'what the schema of the nested class says always holds' },
  { name: 'metadata without a type rule', reason: 'the type that is offered is checked too' },
  {
    name: 'multiple beyond 1e21',
    reason: 'the compiled schema cannot divide numbers that are written with an exponent',
  },
  {
    name: 'multiple beyond 2^53',
    reason: 'the compiled schema divides, and of a number that large no remainder is left',
  },
  {
    name: 'pattern over code units',
    reason: 'JSON Schema reads patterns as Unicode: `.` is a whole character, not half of one',
  },
  { name: 'variation selector', reason: 'JSON Schema counts it as a character, class-validator does not' },
] as const satisfies readonly DtoDifference[];

type Name = (typeof DTO_DIFFERENCES)[number]['name'];

/** RFC 3339, section 5.6. */
const DATE_TIME = /^\d{4}-(0[1-9]|1[0-2])-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

/** The differences that apply to random arguments; each of them makes the call stricter. */
export function differencesIn(dto: RandomDto, value: unknown): readonly Name[] {
  if (typeof value !== 'object' || value === null) return [];
  return dto.properties.flatMap((property) => {
    const sent = Object.hasOwn(value, property.name)
      ? (value as Record<string, unknown>)[property.name]
      : undefined;
    return ofProperty(property, sent);
  });
}

function ofProperty(property: RandomProperty, sent: unknown): readonly Name[] {
  const { of, list, isOptional } = property;
  if (isOptional && sent === null) return ['null for an optional property'];
  if (sent === undefined) return isDto(of) && !isOptional ? ['missing nested object'] : [];
  if (list === undefined) return ofOne(property, sent);
  return Array.isArray(sent) ? sent.flatMap((item) => ofItem(property, item)) : [];
}

function ofOne({ of }: RandomProperty, sent: unknown): readonly Name[] {
  if (!isDto(of)) return of.kind === 'date' ? ofDate(sent) : [];
  return Array.isArray(sent) ? ['list for one nested object'] : differencesIn(of, sent);
}

function ofItem({ of }: RandomProperty, item: unknown): readonly Name[] {
  if (!isDto(of)) return of.kind === 'date' ? ofDate(item) : [];
  return Array.isArray(item) ? ['list as an item of a list of objects'] : differencesIn(of, item);
}

function ofDate(sent: unknown): readonly Name[] {
  return typeof sent === 'string' && DATE_TIME.test(sent) ? [] : ['date in another form'];
}
