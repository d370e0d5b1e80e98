import type { JsonObject } from '../../core/contract/json-schema.js';
import type { AuthorFault } from '../../core/errors/author-fault.js';
import { isRecord } from '../../core/kernel/json.js';

/** The location of a parameter. */
export type ParameterPlace = 'path' | 'query' | 'header' | 'cookie';

/** A parameter of an operation. */
export interface OperationParameter {
  readonly name: string;
  readonly place: ParameterPlace;
  readonly isRequired: boolean;
  readonly description?: string;
  /** As it is in the document. */
  readonly schema: unknown;
  /** How lists and objects are serialized; default: that of the location. */
  readonly style: string;
  readonly explode: boolean;
  readonly allowReserved: boolean;
  /** Serialized as JSON. */
  readonly isJson: boolean;
}

/** The request body of an operation. */
export interface OperationBody {
  readonly type: string;
  readonly isRequired: boolean;
  readonly description?: string;
  readonly schema: unknown;
}

/** A security scheme and how it is sent. */
export interface SecurityScheme {
  readonly name: string;
  readonly how:
    | { readonly kind: 'header' | 'query' | 'cookie'; readonly name: string }
    | { readonly kind: 'bearer' | 'basic' };
}

/** An operation of a document. */
export interface Operation {
  readonly id: string;
  readonly method: string;
  /** With `{name}` placeholders. */
  readonly path: string;
  readonly tags: readonly string[];
  readonly summary?: string;
  readonly description?: string;
  readonly isDeprecated: boolean;
  readonly parameters: readonly OperationParameter[];
  readonly body?: OperationBody;
  /** Alternative lists of schemes; an empty list: no authentication is needed. */
  readonly security: readonly (readonly SecurityScheme[])[];
}

/** The content of a document, and what could not be read. */
interface ReadDocument {
  readonly operations: readonly Operation[];
  /** The first server, with the defaults of its variables. */
  readonly server: string | undefined;
  readonly faults: readonly AuthorFault[];
  /** Values that are not an operation or a path where one is expected. */
  readonly misplaced: readonly AuthorFault[];
}

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch'];
const PLACES = new Set<unknown>(['path', 'query', 'header', 'cookie']);
const BODY_TYPES = [
  /^application\/(?:[\w.+-]+\+)?json\b/i,
  /^application\/x-www-form-urlencoded\b/i,
  /^text\/plain\b/i,
];

/** Reads an OpenAPI document of version 3.0 or 3.1. */
export function readDocument(document: JsonObject): ReadDocument {
  const faults: AuthorFault[] = [];
  const reader = new DocumentReader(document, faults);
  const paths = isRecord(document.paths) ? document.paths : {};
  const misplaced: AuthorFault[] = [];
  const operations = Object.entries(paths).flatMap(([path, item]) => {
    const shared = reader.follow(item);
    // A broken reference is reported elsewhere, and `x-…` are extensions.
    if (!isRecord(shared)) {
      if (shared !== undefined && !path.startsWith('x-')) misplaced.push(noObject(path, shared));
      return [];
    }
    return METHODS.flatMap((method) => {
      const given = shared[method];
      if (isRecord(given)) return [reader.operation({ method, path, shared, given })];
      if (given !== undefined) misplaced.push(noObject(`${method.toUpperCase()} ${path}`, given));
      return [];
    });
  });
  return { operations, server: serverIn(document), faults, misplaced };
}

function noObject(where: string, given: unknown): AuthorFault {
  const what = given === null ? 'null' : Array.isArray(given) ? 'a list' : `a ${typeof given}`;
  return { where, problem: `it is ${what}, and no object`, fix: 'fix the document, or leave it out' };
}

function serverIn({ servers }: JsonObject): string | undefined {
  const first: unknown = Array.isArray(servers) ? servers[0] : undefined;
  if (!isRecord(first) || typeof first.url !== 'string') return undefined;
  const variables = isRecord(first.variables) ? first.variables : {};
  return first.url.replace(/\{([^{}]*)\}/g, (whole, name: string) => {
    const variable = Object.hasOwn(variables, name) ? variables[name] : undefined;
    return isRecord(variable) && typeof variable.default === 'string' ? variable.default : whole;
  });
}

interface GivenOperation {
  readonly method: string;
  readonly path: string;
  readonly shared: JsonObject;
  readonly given: JsonObject;
}

class DocumentReader {
  constructor(
    readonly document: JsonObject,
    readonly faults: AuthorFault[],
  ) {}

  /** The target of a `$ref`; other values unchanged. */
  follow(value: unknown): unknown {
    if (!isRecord(value) || typeof value.$ref !== 'string') return value;
    const fault = deadEnd(this.document, value.$ref);
    if (fault !== undefined) {
      this.faults.push(fault);
      return undefined;
    }
    let found: unknown = value;
    while (isRecord(found) && typeof found.$ref === 'string') found = lookUp(this.document, found.$ref);
    return found;
  }

  operation({ method, path, shared, given }: GivenOperation): Operation {
    const id = typeof given.operationId === 'string' ? given.operationId : `${method} ${path}`;
    const where = `${method.toUpperCase()} ${path}`;
    const body = this.#body(given.requestBody, where);
    const parameters = this.#parameters([shared.parameters, given.parameters], where);
    this.#checkPath(path, parameters, where);
    return {
      id,
      method,
      path,
      tags: Array.isArray(given.tags) ? given.tags.filter((tag) => typeof tag === 'string') : [],
      ...textIn(given, 'summary'),
      ...textIn(given, 'description'),
      isDeprecated: given.deprecated === true,
      parameters,
      ...(body === undefined ? {} : { body }),
      security: this.#security(given.security ?? this.document.security, where),
    };
  }

  /** Parameters of the path and the operation; those of the operation replace those of the same location and name. */
  #parameters(lists: readonly unknown[], where: string): readonly OperationParameter[] {
    const parameters = new Map<string, OperationParameter>();
    for (const given of lists.flatMap((list) => (Array.isArray(list) ? list : []))) {
      const parameter = this.follow(given);
      if (!isRecord(parameter) || typeof parameter.name !== 'string' || !PLACES.has(parameter.in)) {
        this.#fault(where, 'it has a parameter without `name` and `in`', 'fix the document');
        continue;
      }
      const read = readParameter(parameter, parameter.name, parameter.in as ParameterPlace);
      // The specification ignores these headers: media types and security schemes define them.
      const isIgnored = read.place === 'header' && /^(?:accept|content-type|authorization)$/i.test(read.name);
      if (!isIgnored) parameters.set(`${read.place} ${read.name}`, read);
    }
    return [...parameters.values()];
  }

  /** A placeholder without a parameter would be sent literally. */
  #checkPath(path: string, parameters: readonly OperationParameter[], where: string): void {
    for (const name of new Set(Array.from(path.matchAll(/\{([^{}]+)\}/g), ([, name = '']) => name))) {
      if (parameters.some((parameter) => parameter.place === 'path' && parameter.name === name)) continue;
      const fix = `parameters: [{ name: '${name}', in: 'path', required: true, schema: … }]`;
      this.#fault(where, `its path has {${name}}, and none of its parameters in the path has this name`, fix);
    }
  }

  #body(given: unknown, where: string): OperationBody | undefined {
    const body = this.follow(given);
    if (!isRecord(body)) return undefined;
    const content = isRecord(body.content) ? body.content : {};
    for (const wanted of BODY_TYPES) {
      const type = Object.keys(content).find((key) => wanted.test(key));
      if (type === undefined) continue;
      const media = this.follow(content[type]);
      const schema = isRecord(media) ? (media.schema ?? {}) : {};
      return { type, isRequired: body.required === true, ...textIn(body, 'description'), schema };
    }
    const types = Object.keys(content).join(', ') || 'nothing';
    const fix = 'leave it out with `include`, or write a tool of your own for it';
    this.#fault(where, `it takes a body of ${types}, and only JSON, forms and text can be sent`, fix);
    return undefined;
  }

  #security(given: unknown, where: string): Operation['security'] {
    const choices = Array.isArray(given) ? given.filter(isRecord) : [];
    return choices.map((choice) => Object.keys(choice).flatMap((name) => this.#scheme(name, where)));
  }

  #scheme(name: string, where: string): readonly SecurityScheme[] {
    const scheme = this.follow(lookUp(this.document, `#/components/securitySchemes/${pointerPart(name)}`));
    const how = isRecord(scheme) ? howOf(scheme) : undefined;
    if (how !== undefined) return [{ name, how }];
    const fix = 'apiKey, http (bearer, basic), oauth2 and openIdConnect are';
    this.#fault(where, `its security scheme '${name}' is not known`, fix);
    return [];
  }

  #fault(where: string, problem: string, fix: string): void {
    this.faults.push({ where, problem, fix });
  }
}

function readParameter(given: JsonObject, name: string, place: ParameterPlace): OperationParameter {
  const content = isRecord(given.content) ? Object.values(given.content)[0] : undefined;
  const usual = place === 'query' || place === 'cookie' ? 'form' : 'simple';
  const style = typeof given.style === 'string' ? given.style : usual;
  return {
    name,
    place,
    isRequired: place === 'path' || given.required === true,
    ...textIn(given, 'description'),
    schema: given.schema ?? (isRecord(content) ? content.schema : undefined) ?? {},
    style,
    explode: typeof given.explode === 'boolean' ? given.explode : style === 'form',
    allowReserved: given.allowReserved === true,
    isJson: given.schema === undefined && content !== undefined,
  };
}

function howOf({ type, scheme, in: place, name }: JsonObject): SecurityScheme['how'] | undefined {
  if (type === 'oauth2' || type === 'openIdConnect') return { kind: 'bearer' };
  if (type === 'http' && typeof scheme === 'string') {
    const kind = scheme.toLowerCase();
    return kind === 'bearer' || kind === 'basic' ? { kind } : undefined;
  }
  if (type !== 'apiKey' || typeof name !== 'string') return undefined;
  return place === 'header' || place === 'query' || place === 'cookie' ? { kind: place, name } : undefined;
}

function textIn<Name extends string>(given: JsonObject, name: Name): { readonly [Key in Name]?: string } {
  const text = given[name];
  return typeof text === 'string' && text.trim() !== ''
    ? ({ [name]: text.trim() } as Record<Name, string>)
    : {};
}

/** Why a reference cannot be resolved: its target is missing, or the references are circular. */
export function deadEnd(document: JsonObject, reference: string): AuthorFault | undefined {
  const seen = new Set<string>();
  let next = reference;
  while (!seen.has(next)) {
    seen.add(next);
    const found = lookUp(document, next);
    if (found === undefined)
      return {
        where: reference,
        problem: 'it leads to nothing in the document',
        fix: 'bundle the document into one',
      };
    if (!isRecord(found) || typeof found.$ref !== 'string') return undefined;
    next = found.$ref;
  }
  const ring = [...seen, next].join(' → ');
  return { where: reference, problem: `it leads only to references: ${ring}`, fix: 'fix the document' };
}

/** The target of a reference within the document: a JSON Pointer (RFC 6901) after `#`. */
export function lookUp(document: JsonObject, reference: string): unknown {
  if (!reference.startsWith('#/')) return undefined;
  let found: unknown = document;
  for (const part of reference.slice(2).split('/')) {
    const key = decodePart(part).replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(found)) found = found[Number(key)];
    else found = isRecord(found) && Object.hasOwn(found, key) ? found[key] : undefined;
  }
  return found;
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function pointerPart(name: string): string {
  return encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'));
}
