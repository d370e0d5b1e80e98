import type { PolicyRequest } from '../../contract/call.js';
import type { JsonObject } from '../../contract/json-schema.js';
import type { Touch } from '../../contract/touch.js';
import { isRecord } from '../../kernel/json.js';
import { visibleLine } from '../../kernel/visible-text.js';
import type { PermissionRule } from './permission-rule.js';

/** What rules about a call as such are held against. */
export function aboutOf({ tool, arguments: args }: Pick<PolicyRequest, 'tool' | 'arguments'>): {
  readonly tool: string;
  readonly arguments: JsonObject;
} {
  return { tool: tool.name, arguments: args };
}

/** Fails closed: what cannot say what it touches touches what is unknown. */
export async function touchesOf({
  tool,
  arguments: args,
  context,
}: PolicyRequest): Promise<readonly Touch[] | 'as annotated'> {
  if (tool.touches === undefined) return 'as annotated';
  try {
    const touches: unknown = await tool.touches(args, context);
    if (touches === 'as annotated') return touches;
    if (Array.isArray(touches) && touches.every(isTouch)) return touches;
  } catch {
    // It has not said it.
  }
  return [{ action: 'unknown', why: 'the tool could not say what it would touch' }];
}

function isTouch(value: unknown): value is Touch {
  if (!isRecord(value)) return false;
  const { action, path, words, mentions = [], patterns = [], program = '', absolute = '', url, why } = value;
  if (action === 'read' || action === 'write')
    return typeof path === 'string' && typeof absolute === 'string';
  if (action === 'run')
    return (
      areTexts(words, 'or not known') &&
      [mentions, patterns, [program]].every((texts) => areTexts(texts, 'all known'))
    );
  return action === 'open' ? typeof url === 'string' : action === 'unknown' && typeof why === 'string';
}

function areTexts(value: unknown, how: 'all known' | 'or not known'): boolean {
  return (
    Array.isArray(value) &&
    value.every((one) => typeof one === 'string' || (one === undefined && how === 'or not known'))
  );
}

type RunWords = Extract<Touch, { action: 'run' }>['words'];

/** The addresses that commands name: URLs within their words, and hosts where a program takes those. */
export function addressesIn(touches: readonly Touch[]): readonly Touch[] {
  const urls = touches.flatMap((touch) => (touch.action === 'run' ? urlsOf(touch.words) : []));
  return [...new Set(urls)].map((url) => ({ action: 'open', url }));
}

function urlsOf(words: RunWords): readonly string[] {
  const program = words[0]?.split('/').at(-1)?.toLowerCase() ?? '';
  const urls = words.flatMap((word) => urlsIn(word ?? ''));
  if (TAKES_PLACES.test(program)) {
    const opens = program !== 'git' || words.some((word) => GIT_OPENS.test(word ?? ''));
    urls.push(...words.slice(1).flatMap((word) => placeIn(word ?? '', opens)));
  }
  if (!TAKES_HOSTS.test(program)) return urls;
  const options = Object.hasOwn(OTHER_VALUES, program) ? OTHER_VALUES[program] : undefined;
  for (const [index, word] of words.entries()) {
    if (index === 0 || options?.test(words[index - 1] ?? '') === true) continue;
    if (word === undefined || LISTS.test(word)) urls.push(NOT_KNOWN);
    else urls.push(...hostsIn(word));
  }
  return urls;
}

/** An address of no host: what denies one may be about it. */
const NOT_KNOWN = 'http://…';
const URLS = /([a-z][a-z0-9+.-]*):(?=[/\\]{2}|(?<=\b(?:https?|ftp|wss?):)[/\\])[/\\]+/gi;
/** `{a,b}` and `[1-9]` are for curl to fill in. */
const AUTHORITY = /^(?:\{[^}]*\}|\[[^\]]*\]|[^/\\?#\s"'<>`,{[])*/;

function urlsIn(word: string): string[] {
  return [...word.matchAll(URLS)].flatMap((match) => {
    const rest = word.slice(match.index + match[0].length);
    const authority = AUTHORITY.exec(rest)?.[0] ?? '';
    // Not every program ends a host where the standard does.
    const other = /^[\\?#][^/\s]*@([^/\\?#\s]+)/.exec(rest.slice(authority.length))?.[1];
    const found = other === undefined ? [authority] : [authority, other];
    return found.filter((one) => one !== '').map((one) => `${match[1]}://${one}`);
  });
}

/** `user@host:path`, `host:path`, `host::module`. */
const TAKES_PLACES = /^(git|ssh|scp|sftp|rsync|mosh|svn|hg|npm|pnpm|yarn|pip3?|uv)$/;
const GIT_OPENS = /^(clone|fetch|pull|push|ls-remote|remote|submodule|archive)$/;

function placeIn(word: string, opens: boolean): readonly string[] {
  const [, user, host] =
    /^(?:--?[\w-]+=)?([^\s/:@]*@)?(\[[\da-f:]+\]|[^\s/:@[\]]+):(?!\/\/)/i.exec(word) ?? [];
  return host === undefined || (user === undefined && !opens) ? [] : [`ssh://${host}`];
}

/** Programs whose words may be hosts as they are. */
const TAKES_HOSTS =
  /^(curl|wget2?|aria2c|axel|https?|xh|lynx|links2?|w3m|nc|ncat|netcat|socat|telnet|t?ftp|lftp|sftp|ssh|ssh-keyscan|ssh-copy-id|mosh|ping6?|traceroute|tracepath|mtr|dig|host|nslookup|drill|whois|nmap|openssl)$/;
/** Options whose values are something else. */
const OTHER_VALUES: Readonly<Record<string, RegExp>> = {
  curl: /^(-[a-zA-Z#]*[odHTFbcEuAXmrwYyzCD]|--(output|output-dir|data(-\w+)?|json|header|upload-file|form|cookie|cookie-jar|cert|key|cacert|user|user-agent|request|max-time|connect-timeout|retry|write-out|dump-header))$/,
  wget: /^(-[a-zA-Z]*[OoaPUtTQ]|--(output-document|output-file|append-output|directory-prefix|user-agent|tries|timeout))$/,
};
const LISTS = /^(-[a-zA-Z]*K|--config|--input-file|-i$)/;

function hostsIn(word: string): readonly string[] {
  const isOption = word.startsWith('-');
  const value = isOption ? (/^--[\w-]+=(.*)$|^-\w(.+)$/.exec(word)?.slice(1).find(Boolean) ?? '') : word;
  if (value.search(URLS) >= 0) return [];
  const hosts = value.split(/[\s,]/).flatMap((part) => {
    const authority = (AUTHORITY.exec(part)?.[0] ?? '').split('@').at(-1) ?? '';
    return authority.startsWith('[') ? [authority] : authority.split(':');
  });
  // What stands behind the letter of an option is most often more of these.
  return hosts
    .filter((host) => host !== '' && !/^\d{1,5}$/.test(host) && (!isOption || /[.:]/.test(host)))
    .map((host) => `http://${host}`);
}

const MOST_CHARACTERS = 200;

/** What a call would do, for people: `writes 'src/a.ts'`. Nothing in it is hidden, and it stays on its line. */
export function describeTouch(touch: Touch): string {
  switch (touch.action) {
    case 'read':
      return `reads ${quoted(touch.absolute ?? touch.path)}${touch.isDeep ? ' and what is in it' : ''}`;
    case 'write':
      return `changes ${quoted(touch.absolute ?? touch.path)}${touch.isDeep ? ' and what is in it' : ''}`;
    case 'run':
      return `runs ${quoted(touch.words.map((word) => word ?? '…').join(' '))}`;
    case 'open':
      return `opens ${quoted(touch.url)}`;
    case 'unknown':
      return 'does what cannot be told before';
  }
}

function quoted(text: string): string {
  const seen = visibleLine(text);
  return `'${seen.length > MOST_CHARACTERS ? `${seen.slice(0, MOST_CHARACTERS)}…` : seen}'`;
}

/**
 * The rules that a yes to a call stands for where it is to hold again: those very paths, commands and addresses, and
 * for what cannot be understood, the very same call.
 *
 * @example
 * ```ts
 * rulesOfYes('write_file', { path: 'a.txt' }, [{ action: 'write', path: 'a.txt' }]);
 * // [{ tool: 'write_file', action: 'write', path: 'a.txt' }]
 * ```
 */
export function rulesOfYes(
  tool: string,
  args: Readonly<Record<string, unknown>>,
  touches: readonly Touch[],
): readonly Omit<PermissionRule, 'decision'>[] {
  const exactly = {
    tool: escaped(tool),
    arguments: Object.fromEntries(Object.entries(args).map(exactValue)),
  };
  if (touches.length === 0) return [exactly];
  const rules = touches.map((touch): Omit<PermissionRule, 'decision'> => {
    if (touch.action === 'read' || touch.action === 'write')
      return {
        tool: escaped(tool),
        action: touch.action,
        path: escaped(touch.path) + (touch.isDeep ? '/**' : ''),
      };
    return exactly;
  });
  return rules.filter(
    (rule, index) => rules.findIndex((one) => JSON.stringify(one) === JSON.stringify(rule)) === index,
  );
}

function exactValue([name, value]: readonly [string, unknown]): readonly [string, unknown] {
  return [name, typeof value === 'string' ? value.replace(/[*\\]/g, '\\$&') : value];
}

/** As a pattern that fits nothing else. */
function escaped(text: string): string {
  return text.replace(/[*?[\]{}\\]/g, '\\$&');
}
