import { limitedFetch, replacedBody } from './limited-fetch.js';

/** Hides a secret in a text that another system wrote. */
const HIDDEN = '[secret]';
/** Shorter texts are not secrets, and would occur by chance. */
const FEWEST_CHARACTERS = 6;
const SECRET_FIELDS = ['refresh_token', 'code', 'code_verifier', 'client_secret', 'client_assertion'];

/** `fetch`, whose error responses do not repeat the secrets of the request: they end in errors and logs. */
export async function fetchWithoutEcho(url: string | URL, init: RequestInit = {}): Promise<Response> {
  const response = await limitedFetch(url, init);
  if (response.ok) return response;
  const secrets = secretsOf(init);
  const headers = new Headers(response.headers);
  for (const [name, value] of response.headers)
    if (hide(value, secrets) !== value) headers.set(name, hide(value, secrets));
  const body = NO_BODY.has(response.status) ? null : hide(await response.text(), secrets);
  return replacedBody(response, body, headers);
}

const NO_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/** A JSON value in which these texts are hidden; the value itself if it contains none of them. */
export function withoutTexts<Value>(value: Value, texts: readonly (string | undefined)[]): Value {
  const secrets = texts.filter((text) => text !== undefined);
  const before = secrets.length === 0 ? '' : JSON.stringify(value);
  const after = hide(before, secrets);
  return after === before ? value : JSON.parse(after);
}

function hide(text: string, secrets: readonly string[]): string {
  return secrets
    .filter(({ length }) => length >= FEWEST_CHARACTERS)
    .reduce((rest, secret) => rest.replaceAll(secret, HIDDEN), text);
}

function secretsOf({ headers, body }: RequestInit): readonly string[] {
  const [, scheme = '', credentials = ''] =
    /^(\S+) (.+)$/.exec(new Headers(headers).get('authorization') ?? '') ?? [];
  const [, password = ''] = /^Basic$/i.test(scheme)
    ? (/^[^:]*:(.*)$/.exec(Buffer.from(credentials, 'base64').toString()) ?? [])
    : [];
  const form = new URLSearchParams(body instanceof URLSearchParams ? body : '');
  return [
    credentials,
    password,
    decodeURIComponent(password),
    ...SECRET_FIELDS.map((name) => form.get(name) ?? ''),
  ];
}
