import type { JsonObject } from '../../contract/json-schema.js';
import type { Touch } from '../../contract/touch.js';
import { isRecord, plainJson } from '../../kernel/json.js';
import {
  FILLED_TEXT,
  listOf,
  type OptionRule,
  objectOf,
  oneOf,
  RECORD,
  required,
  TEXT,
} from '../../kernel/options.js';
import { foldedPath } from '../paths/folder-path.js';
import { globMatcher, globMeets, globReaches } from '../paths/glob.js';

/** What becomes of a call: made, asked about, refused. */
export type Permission = 'allow' | 'ask' | 'deny';

/**
 * A rule about calls. All that it names has to fit; what it does not name may be anything. A rule with `action`,
 * `path`, `command` or `host` is about each single thing that a call touches, one without about all of the call.
 *
 * @example
 * ```ts
 * const rules: PermissionRule[] = [
 *   { decision: 'allow', action: 'write', path: 'src/**' },
 *   { decision: 'deny', path: '**\/.env*', reason: 'secrets stay where they are' },
 *   { decision: 'allow', command: 'git status **' },
 *   { decision: 'ask', tool: 'place_order', arguments: { currency: 'EUR' } },
 * ];
 * ```
 */
export interface PermissionRule {
  readonly decision: Permission;
  /** Name of a tool; `*` stands for any characters. */
  readonly tool?: string;
  /** Values of arguments by name. In texts `*` stands for any characters; other values have to be the same. */
  readonly arguments?: Readonly<Record<string, unknown>>;
  readonly action?: Touch['action'];
  /** Pattern of paths, as `src/**`; from `/` on for what is outside of the folder. */
  readonly path?: string;
  /**
   * A program and its arguments, word by word; in a word `*` stands for any characters, and `**` at the end for any
   * further words. What denies or asks fits whatever follows, and with options between its words; what allows fits nothing
   * more than it says.
   */
  readonly command?: string;
  /** Pattern of names of hosts, as `*.example.com`; one that ends with a port, as `example.com:8080`, means that alone. */
  readonly host?: string;
  /** Told to whoever is asked, and to the model where the rule denies. */
  readonly reason?: string;
}

const PATTERN: OptionRule = {
  accepts: (value) => FILLED_TEXT.accepts(value) && isPattern(String(value)),
  fix: "a pattern: 'src/**'",
  schema: { type: 'string', pattern: '\\S' },
};

function isPattern(text: string): boolean {
  try {
    globMatcher(text);
    return true;
  } catch {
    return false;
  }
}

/** What rules may be. */
export const RULES: OptionRule = listOf(
  objectOf<PermissionRule>(
    {
      decision: required(oneOf('allow', 'ask', 'deny')),
      tool: PATTERN,
      arguments: RECORD,
      action: oneOf('read', 'write', 'run', 'open', 'unknown'),
      path: PATTERN,
      command: FILLED_TEXT,
      host: PATTERN,
      reason: TEXT,
    },
    {
      fix: "{ decision: 'allow', path: 'src/**' }",
      meant: { allow: "decision: 'allow'", deny: "decision: 'deny'" },
    },
  ),
  "[{ decision: 'allow', path: 'src/**' }]",
);

/** As {@link RULES}; one that allows everything has to say so. */
export const SAID_RULES: OptionRule = {
  ...RULES,
  accepts: (value) =>
    RULES.accepts(value) && !(value as readonly Readonly<Record<string, unknown>>[]).some(allowsUnsaid),
  explain: (value, option) => [
    ...(RULES.explain?.(value, option) ?? []),
    ...(Array.isArray(value) ? value : []).flatMap((rule: unknown, index) =>
      isRecord(rule) && allowsUnsaid(rule)
        ? [
            {
              option,
              problem: `${option}[${index}] allows everything without saying so`,
              fix: `${option}: ${ALLOWS}`,
            },
          ]
        : [],
    ),
  ],
};

const ALLOWS =
  "[{ decision: 'allow', path: 'src/**' }], or [{ decision: 'allow', tool: '*' }] where everything is meant";

function allowsUnsaid({ decision, reason: _, ...about }: Readonly<Record<string, unknown>>): boolean {
  return decision === 'allow' && Object.values(about).every((part) => part === undefined);
}

/** What a rule is held against: a call, and one of the things that it touches. */
export interface Judged {
  readonly tool: string;
  readonly arguments: JsonObject;
  /** Nothing where the call as such is meant. */
  readonly touch?: Touch;
  /** The tool has said that it touches nothing. */
  readonly touchesNothing?: boolean;
}

/** `maybe`: of words that are not known yet, or of a folder with something in it that would fit. */
type Fit = 'yes' | 'maybe' | 'no';

/** A rule that is ready to be held against calls. */
export interface ReadyRule {
  readonly rule: PermissionRule;
  /** The higher, the more it says of what it is about. */
  readonly weight: number;
  fits(judged: Judged): Fit;
}

/** Makes a rule ready. What denies or asks is not missed by other capitals or forms of the same name. */
export function readyRule(rule: PermissionRule): ReadyRule {
  const isStrict = rule.decision === 'allow';
  const tool = rule.tool === undefined ? undefined : textMatcher(rule.tool);
  const args = Object.entries(rule.arguments ?? {}).map(([name, wanted]) => ({
    name,
    fits: valueMatcher(wanted),
  }));
  const fitTouch = isAboutTouches(rule) ? touchMatcher(rule, isStrict) : undefined;
  return {
    rule,
    weight: weightOf(rule),
    fits: ({ tool: name, arguments: given, touch }) => {
      if (tool !== undefined && !tool(name)) return 'no';
      if (!args.every(({ name: key, fits }) => Object.hasOwn(given, key) && fits(given[key]))) return 'no';
      if (fitTouch === undefined) return 'yes';
      return touch === undefined ? 'no' : fitTouch(touch);
    },
  };
}

/** Whether a rule is about single things that a call touches. */
function isAboutTouches({ action, path, command, host }: PermissionRule): boolean {
  return [action, path, command, host].some((part) => part !== undefined);
}

/** A path or command says more than a kind of touch, that more than a tool; of two, the one with more characters. */
function weightOf(rule: PermissionRule): number {
  const { tool, action, path, command, host } = rule;
  const letters = (text: string | undefined): number => (text ?? '').replace(/[*?]/g, '').length;
  const about = letters(path) + letters(command) + letters(host);
  const named = Object.values(rule.arguments ?? {}).reduce(
    (sum: number, value) => sum + 1 + letters(String(value)),
    0,
  );
  const kind = [path, command, host].some((part) => part !== undefined) ? 4_000_000 : 0;
  return (
    kind +
    Math.min(about, 900) * 1_000 +
    named * 10 +
    (action === undefined ? 0 : 5) +
    (tool === undefined ? 0 : 3)
  );
}

/** `*` stands for any characters, and `\\` before one means that itself. */
function textMatcher(pattern: string): (text: string) => boolean {
  const parts: string[] = [];
  let part = '';
  for (let index = 0; index < pattern.length; index += 1) {
    const isEscape = pattern[index] === '\\' && index + 1 < pattern.length;
    if (isEscape) index += 1;
    if (pattern[index] === '*' && !isEscape) {
      parts.push(part);
      part = '';
    } else part += pattern[index];
  }
  parts.push(part);
  const [first = '', ...others] = parts;
  const last = others.pop();
  if (last === undefined) return (text) => text === first;
  return (text) => {
    let at = first.length;
    if (!text.startsWith(first)) return false;
    for (const part of others) {
      const found = text.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    return text.length - at >= last.length && text.endsWith(last);
  };
}

function valueMatcher(wanted: unknown): (value: unknown) => boolean {
  if (typeof wanted === 'string') {
    const fits = textMatcher(wanted);
    return (value) => typeof value === 'string' && fits(value);
  }
  const text = JSON.stringify(plainJson(wanted));
  return (value) => JSON.stringify(plainJson(value)) === text;
}

function touchMatcher(rule: PermissionRule, isStrict: boolean): (touch: Touch) => Fit {
  const path = rule.path === undefined ? undefined : pathMatcher(rule.path, isStrict);
  const words = rule.command?.trim().split(/\s+/);
  const host = rule.host === undefined ? undefined : hostMatcher(rule.host, isStrict);
  return (touch) => {
    if (rule.action !== undefined && rule.action !== touch.action && !isMention(touch, path, isStrict))
      return 'no';
    if (path !== undefined) return path(touch);
    if (words !== undefined) return touch.action === 'run' ? fitCommand(words, touch, isStrict) : 'no';
    if (host !== undefined) return touch.action === 'open' ? host(touch.url) : 'no';
    return 'yes';
  };
}

/** A program may do anything with the paths that it is given: what denies one kind of touch means that too. */
function isMention(touch: Touch, path: unknown, isStrict: boolean): boolean {
  return touch.action === 'run' && path !== undefined && !isStrict;
}

/** Pattern and address are brought into the one form that the URL standard has for them. */
function hostMatcher(pattern: string, isStrict: boolean): (url: string) => Fit {
  const fits = textMatcher(plainPattern(pattern.toLowerCase()));
  return (url) => {
    if (WITHOUT_HOST.test(url)) return 'no';
    const given = hostOf(isStrict || BEGINS_WITH_SCHEME.test(url) ? url : `http://${url}`);
    if (given === undefined) return isStrict ? 'no' : 'maybe';
    const { host, port } = given;
    if (fits(host) || (port !== '' && fits(`${host}:${port}`))) return 'yes';
    // Some programs fill that in by themselves.
    return !isStrict && /[{}*,]/.test(host) ? 'maybe' : 'no';
  };
}

const WITHOUT_HOST = /^(file|data|blob|about):/i;
const BEGINS_WITH_SCHEME = /^([a-z][a-z0-9+.-]*:)[/\\]/i;
const KNOWN_PORTS: Readonly<Record<string, string>> = {
  'http:': '80',
  'https:': '443',
  'ws:': '80',
  'wss:': '443',
};

function hostOf(url: string): { readonly host: string; readonly port: string } | undefined {
  const scheme = BEGINS_WITH_SCHEME.exec(url)?.[1]?.toLowerCase();
  // The standard reads the host of a scheme that it does not know as it stands.
  const isOther = scheme !== undefined && !Object.hasOwn(KNOWN_PORTS, scheme);
  const web = isOther ? `http:${url.slice(scheme.length)}` : url;
  if (!URL.canParse(web)) return undefined;
  const { hostname, port, protocol } = new URL(web);
  if (hostname === '') return undefined;
  return { host: plainHost(hostname), port: port || (isOther ? '' : (KNOWN_PORTS[protocol] ?? '')) };
}

/** Without the dot of the root; an address of IPv4 that is written as one of IPv6 is that. */
function plainHost(hostname: string): string {
  const [, high, low] = /^\[::ffff:([0-9a-f]+):([0-9a-f]+)\]$/.exec(hostname) ?? [];
  if (high === undefined || low === undefined) return hostname.replace(/\.$/, '');
  return [high, low]
    .map((part) => Number.parseInt(part, 16))
    .flatMap((part) => [part >> 8, part & 255])
    .join('.');
}

function plainPattern(pattern: string): string {
  const address = /^[^[\]]*:[^[\]]*:[^[\]]*$/.test(pattern) ? `[${pattern}]` : pattern;
  const [, name = '', port = ''] = /^(.*?)(:[\d*]+)?$/.exec(address) ?? [];
  const read = (text: string) => (/[*?\\]/.test(text) ? undefined : hostOf(`http://${text}`)?.host);
  const labels = name.split('.').map((label) => (/[^ -~]/.test(label) ? (read(label) ?? label) : label));
  return (read(name) ?? labels.join('.').replace(/\.$/, '')) + port;
}

function pathMatcher(pattern: string, isStrict: boolean): (touch: Touch) => Fit {
  const form = isStrict ? (path: string) => path : foldedPath;
  const isOutside = pattern.startsWith('/');
  const fits = globMatcher(form(pattern));
  const reaches = globReaches(form(pattern));
  const meets = globMeets(form(pattern));
  const fitPath = (path: string, isDeep: boolean): Fit => {
    // What is allowed within the folder is not allowed elsewhere; what is denied is, where it may be anywhere.
    if (isOutside !== path.startsWith('/') && (isStrict || isOutside)) return 'no';
    const names = form(path).replace(/^\//, '');
    if (fits(names)) return 'yes';
    return isDeep && reaches(names) ? 'maybe' : 'no';
  };
  const mayMeet = (shell: string): boolean =>
    (isOutside === shell.startsWith('/') || !isOutside) && meets(form(shell).replace(/^\//, ''));
  return (touch) => {
    if (touch.action === 'run') {
      if (isStrict) return 'no';
      const fit = fitMentions(touch.mentions ?? [], fitPath);
      // A word that is not known may be any path.
      const mayFit = touch.words.includes(undefined) || touch.patterns?.some(mayMeet);
      return fit === 'no' && mayFit ? 'maybe' : fit;
    }
    if (touch.action !== 'read' && touch.action !== 'write') return 'no';
    const fit = fitPath(touch.path, touch.isDeep === true);
    return fit === 'no' && isOutside && touch.absolute !== undefined
      ? fitPath(touch.absolute, touch.isDeep === true)
      : fit;
  };
}

/** A mention that ends in `/` is a folder. */
function fitMentions(mentions: readonly string[], fitPath: (path: string, isDeep: boolean) => Fit): Fit {
  const found = mentions.map((path) => fitPath(path.replace(/(?<=.)\/$/, ''), path.endsWith('/')));
  return found.find((fit) => fit === 'yes') ?? found.find((fit) => fit === 'maybe') ?? 'no';
}

/** What denies or asks is not missed by another way to name the program, either. */
function fitCommand(
  wanted: readonly string[],
  { words, program }: Extract<Touch, { action: 'run' }>,
  isStrict: boolean,
): Fit {
  const fit = fitWords(wanted, words, isStrict);
  const [first = '', ...others] = wanted;
  if (isStrict || program === undefined || fit === 'yes') return fit;
  const inFolder = fitWords(
    [first.replace(/^(\.\/+)+/, ''), ...others],
    [program, ...words.slice(1)],
    isStrict,
  );
  return inFolder === 'no' ? fit : inFolder;
}

/** Whether the words of a command are those of a rule, one by one; for what denies, options may stand between them. */
function fitWords(wanted: readonly string[], words: readonly (string | undefined)[], isStrict: boolean): Fit {
  let places = new Set([0]);
  let isMaybe = false;
  for (const [index, pattern] of wanted.entries()) {
    if (pattern === '**' && index === wanted.length - 1) return 'yes';
    if (!isStrict && index > 0) passOptions(places, words);
    const next = new Set<number>();
    for (const at of places) {
      const word = words[at];
      // It may be any word, or several, or none.
      if (word === undefined) isMaybe ||= at < words.length;
      else if (fitsWord(pattern, index === 0 && !isStrict ? programIn(word, pattern) : word, isStrict))
        next.add(at + 1);
    }
    places = next;
    if (places.size === 0) return isMaybe && !isStrict ? 'maybe' : 'no';
  }
  return isStrict && words.length > wanted.length ? 'no' : 'yes';
}

/** Which options take the next word, each program says itself. */
function passOptions(places: Set<number>, words: readonly (string | undefined)[]): void {
  const isOption = (at: number): boolean => /^[-+]/.test(words[at] ?? '');
  for (const at of places) {
    if (!isOption(at)) continue;
    places.add(at + 1);
    if (at + 1 < words.length && !isOption(at + 1) && !words[at]?.includes('=')) places.add(at + 2);
  }
}

function fitsWord(pattern: string, word: string, isStrict: boolean): boolean {
  return isStrict ? textMatcher(pattern)(word) : textMatcher(foldedPath(pattern))(foldedPath(word));
}

/** `/bin/rm` and `./rm` are `rm`, for what denies it. */
function programIn(word: string, pattern: string): string {
  return pattern.includes('/') ? word : (word.split('/').at(-1) ?? word);
}
