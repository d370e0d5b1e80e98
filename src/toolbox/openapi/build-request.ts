import type { JsonObject } from '../../contract/json-schema.js';
import { isRecord } from '../../kernel/json.js';
import type { WebRequest } from '../network/web-access.js';
import type { ArgumentPlan } from './operation-schema.js';
import type { Operation, OperationParameter } from './read-document.js';

/** A credential and how it is sent. */
export type Credential =
  | { readonly kind: 'header' | 'query' | 'cookie'; readonly name: string; readonly value: string }
  | { readonly kind: 'bearer' | 'basic'; readonly value: string };

/** What a request is made of. */
interface RequestParts {
  readonly operation: Operation;
  readonly plan: ArgumentPlan;
  readonly args: JsonObject;
  /** Base address, with or without `/` at its end. */
  readonly server: string;
  readonly credentials: readonly Credential[];
  readonly headers: Readonly<Record<string, string>>;
}

/** The request of a call. Arguments stay in their places: none reaches another part of the address. */
export function buildRequest(parts: RequestParts): WebRequest {
  const { operation, plan, args, credentials } = parts;
  const query: string[] = [];
  const cookies: string[] = [];
  const headers: Record<string, string> = {
    accept: 'application/json, text/*;q=0.9, */*;q=0.5',
    ...parts.headers,
  };
  let path = operation.path;
  for (const { argument, parameter } of plan.parameters) {
    const value = args[argument];
    if (value === undefined) continue;
    const { name, place } = parameter;
    if (place === 'path') path = path.replaceAll(`{${name}}`, pathPart(value, parameter));
    if (place === 'query') query.push(...pairs(value, parameter).map((pair) => pairText(pair, parameter)));
    if (place === 'header') headers[name.toLowerCase()] = oneLine(listText(value, parameter));
    if (place === 'cookie') cookies.push(...pairs(value, parameter).map((pair) => pairText(pair, parameter)));
  }
  for (const credential of credentials) addCredential(credential, { headers, query, cookies });
  if (cookies.length > 0) headers.cookie = cookies.join('; ');
  const search = query.length === 0 ? '' : `?${query.join('&')}`;
  const url = `${parts.server.replace(/\/$/, '')}${path}${search}`;
  const body = plan.body === undefined ? undefined : args[plan.body];
  const method = operation.method.toUpperCase();
  if (body === undefined || operation.body === undefined) return { url, method, headers };
  headers['content-type'] = operation.body.type;
  return { url, method, headers, body: bodyText(body, operation.body.type) };
}

/** `..` and `.` are resolved by whoever reads an address, however they are written: they are no parts of a path. */
function pathPart(value: unknown, parameter: OperationParameter): string {
  const { name, style, explode } = parameter;
  const items = Array.isArray(value) ? value.map((item) => encodeURIComponent(plainText(item))) : undefined;
  const listed = items?.join(',') ?? listText(value, parameter, encodeURIComponent);
  let part = listed;
  if (style === 'label') part = `.${explode && items ? items.join('.') : listed}`;
  if (style === 'matrix')
    part = explode && items ? items.map((item) => `;${name}=${item}`).join('') : `;${name}=${listed}`;
  if (!/^(?:\.|%2e){0,2}$/i.test(part)) return part;
  throw new Error(`${name} must not be '${plainText(value)}': it is a part of a path.`);
}

type Pair = readonly [name: string, value: string];

/** A value as the pairs of a query or of cookies (OpenAPI 3.1, Style Examples). */
function pairs(value: unknown, parameter: OperationParameter): readonly Pair[] {
  const { name, style, explode, isJson } = parameter;
  if (isJson) return [[name, JSON.stringify(value)]];
  if (Array.isArray(value)) {
    if (style === 'form' && explode) return value.map((item) => [name, plainText(item)]);
    return [[name, value.map(plainText).join(SEPARATORS[style] ?? ',')]];
  }
  if (!isRecord(value)) return [[name, plainText(value)]];
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  if (style === 'deepObject') return entries.map(([key, item]) => [`${name}[${key}]`, plainText(item)]);
  if (explode) return entries.map(([key, item]) => [key, plainText(item)]);
  return [[name, entries.flatMap(([key, item]) => [key, plainText(item)]).join(SEPARATORS[style] ?? ',')]];
}

const SEPARATORS: Readonly<Record<string, string>> = { spaceDelimited: ' ', pipeDelimited: '|' };

function pairText([name, value]: Pair, { allowReserved }: OperationParameter): string {
  const encoded = encodeURIComponent(value);
  // What is reserved but not a separator of pairs may stay as it is.
  const text = allowReserved ? encoded.replace(/%(?:3A|2F|3F|40|24|2C|3B)/g, decodeURIComponent) : encoded;
  return `${encodeURIComponent(name)}=${text}`;
}

/** A value of the style `simple`: `a,b` or `key,value`, or with `explode` `key=value`. */
function listText(
  value: unknown,
  { explode, isJson }: OperationParameter,
  encode: (text: string) => string = (text) => text,
): string {
  if (isJson) return encode(JSON.stringify(value));
  if (Array.isArray(value)) return value.map((item) => encode(plainText(item))).join(',');
  if (!isRecord(value)) return encode(plainText(value));
  return Object.entries(value)
    .map(([key, item]) => `${encode(key)}${explode ? '=' : ','}${encode(plainText(item))}`)
    .join(',');
}

function plainText(value: unknown): string {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
}

/** A header has one line of Latin-1; anything else would begin another header, or be refused by Node. */
function oneLine(text: string): string {
  return text.replace(/[^\t -~\x80-\xff]+/g, ' ');
}

function bodyText(body: unknown, type: string): string {
  if (/json\b/i.test(type)) return JSON.stringify(body);
  if (!/x-www-form-urlencoded/i.test(type)) return plainText(body);
  const entries = isRecord(body) ? Object.entries(body) : [];
  const fields = entries.flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((item): Pair => [name, plainText(item)]),
  );
  const form = new URLSearchParams();
  for (const [name, value] of fields) form.append(name, value);
  return form.toString();
}

interface Parts {
  readonly headers: Record<string, string>;
  readonly query: string[];
  readonly cookies: string[];
}

function addCredential(credential: Credential, { headers, query, cookies }: Parts): void {
  const { value } = credential;
  switch (credential.kind) {
    case 'bearer':
      headers.authorization = `Bearer ${value}`;
      return;
    case 'basic':
      headers.authorization = `Basic ${Buffer.from(value).toString('base64')}`;
      return;
    case 'header':
      headers[credential.name.toLowerCase()] = value;
      return;
    case 'query':
      query.push(`${encodeURIComponent(credential.name)}=${encodeURIComponent(value)}`);
      return;
    case 'cookie':
      cookies.push(`${encodeURIComponent(credential.name)}=${encodeURIComponent(value)}`);
  }
}
