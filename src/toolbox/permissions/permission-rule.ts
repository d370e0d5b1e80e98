import type { JsonObject } from '../../contract/json-schema.js';
import type { ResourceAccess } from '../../contract/touch.js';
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
import { globMatcher, globReaches, textMatcher } from '../paths/glob.js';

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
 *   { decision: 'allow', command: 'npm run *' },
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
  readonly action?: ResourceAccess['action'];
  /** Pattern of paths, as `src/**`; from `/` on for what is outside of the folder. */
  readonly path?: string;
  /**
   * A program and its arguments, word by word; in a word `*` stands for any characters. A rule that allows fits the
   * whole command, and any further words only where it ends in ` *`. A rule that asks or denies fits whatever follows.
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

const SHAPE = {
  decision: required(oneOf('allow', 'ask', 'deny')),
  tool: PATTERN,
  arguments: RECORD,
  action: oneOf('read', 'write', 'run', 'open', 'unknown'),
  path: PATTERN,
  command: FILLED_TEXT,
  host: PATTERN,
  reason: TEXT,
};
const EXAMPLE = "{ decision: 'allow', path: 'src/**' }";
const MEANT = { allow: "decision: 'allow'", deny: "decision: 'deny'" };

/** What rules may be. */
export const RULES: OptionRule = listOf(
  objectOf<PermissionRule>(SHAPE, { fix: EXAMPLE, meant: MEANT }),
  `[${EXAMPLE}]`,
);

/** As {@link RULES}; a rule that allows everything has to state it. */
export const SAID_RULES: OptionRule = {
  ...RULES,
  accepts: (value) => RULES.accepts(value) && !(value as readonly unknown[]).some(allowsUnsaid),
  explain: (value, option) => [
    ...(RULES.explain?.(value, option) ?? []),
    ...(Array.isArray(value) ? value : []).flatMap((rule: unknown, index) => {
      const problem = `${option}[${index}] allows everything without saying so`;
      const fix = `${option}: [${EXAMPLE}], or [{ decision: 'allow', tool: '*' }] where everything is meant`;
      return allowsUnsaid(rule) ? [{ option, problem, fix }] : [];
    }),
  ],
};

function allowsUnsaid(rule: unknown): boolean {
  if (!isRecord(rule) || rule.decision !== 'allow') return false;
  const { decision: _1, reason: _2, ...about } = rule;
  return Object.values(about).every((part) => part === undefined);
}

/** What a rule is compared with: a call, and one of the resources that it would access. */
export interface Subject {
  readonly tool: string;
  readonly arguments: JsonObject;
  /** Nothing where the call as such is meant. */
  readonly access?: ResourceAccess;
  /** The tool has stated that it accesses nothing. */
  readonly accessesNothing?: boolean;
}

/** `maybe`: of words that are not known yet, or of a folder with something in it that would fit. */
type Fit = 'yes' | 'maybe' | 'no';

/** A rule that is ready to be compared with calls. */
export interface ReadyRule {
  readonly rule: PermissionRule;
  /** The higher, the more it says of what it is about. */
  readonly weight: number;
  fits(subject: Subject): Fit;
}

/** Makes a rule ready. A rule that denies or asks also fits other capitals and forms of the same name. */
export function readyRule(rule: PermissionRule): ReadyRule {
  const isStrict = rule.decision === 'allow';
  const tool = textMatcher(rule.tool ?? '*');
  const args = Object.entries(rule.arguments ?? {}).map(
    ([name, value]) => [name, valueMatcher(value)] as const,
  );
  const isAboutAccess = [rule.action, rule.path, rule.command, rule.host].some((part) => part !== undefined);
  const fitAccess = isAboutAccess ? accessMatcher(rule, isStrict) : () => 'yes' as const;
  return {
    rule,
    weight: weightOf(rule),
    fits: ({ tool: name, arguments: given, access }) => {
      const isOfCall =
        tool(name) && args.every(([key, fits]) => Object.hasOwn(given, key) && fits(given[key]));
      if (!isOfCall || (isAboutAccess && access === undefined)) return 'no';
      return access === undefined ? 'yes' : fitAccess(access);
    },
  };
}

/** A path or command says more than an action, that more than a tool; of two, the one with more characters. */
function weightOf({ tool, action, path, command, host, arguments: args = {} }: PermissionRule): number {
  const letters = (value: unknown): number => String(value ?? '').replace(/[*?]/g, '').length;
  const about = [path, command, host].filter((part) => part !== undefined);
  const named = Object.values(args).reduce((sum: number, value) => sum + 1 + letters(value), 0);
  const kind =
    (about.length > 0 ? 4_000_000 : 0) + (action === undefined ? 0 : 5) + (tool === undefined ? 0 : 3);
  return kind + Math.min(letters(about.join('')), 900) * 1_000 + named * 10;
}

function valueMatcher(wanted: unknown): (value: unknown) => boolean {
  if (typeof wanted === 'string') {
    const fits = textMatcher(wanted);
    return (value) => typeof value === 'string' && fits(value);
  }
  const text = JSON.stringify(plainJson(wanted));
  return (value) => JSON.stringify(plainJson(value)) === text;
}

function accessMatcher(rule: PermissionRule, isStrict: boolean): (access: ResourceAccess) => Fit {
  const path = rule.path === undefined ? undefined : pathMatcher(rule.path, isStrict);
  const command = rule.command === undefined ? undefined : commandMatcher(rule.command, isStrict);
  const host = rule.host === undefined ? undefined : hostMatcher(rule.host, isStrict);
  const isHost = (url: string): boolean =>
    (url.includes('://') || rule.host?.includes('.') === true) && host?.(url) === 'yes';
  // A program may do anything with the paths and hosts that it is given.
  const isOfAction = (access: ResourceAccess): boolean => {
    if (rule.action === undefined || rule.action === access.action) return true;
    if (access.action !== 'run' || isStrict) return false;
    if (rule.action === 'open') return host !== undefined;
    return path !== undefined && (rule.action === 'read' || access.isReadOnly !== true);
  };
  return (access) => {
    if (!isOfAction(access)) return 'no';
    if (path !== undefined) return path(access);
    if (command !== undefined) return access.action === 'run' ? command(access.words) : 'no';
    if (host === undefined) return 'yes';
    if (access.action === 'open') return host(access.url);
    // A hint: what a program opens by itself is not among its words.
    const isNamed = access.action === 'run' && !isStrict && access.words.flatMap(addressesIn).some(isHost);
    return isNamed ? 'yes' : 'no';
  };
}

/** `--url=http://a/b`, `git@a:b`, `a.test`. */
function addressesIn(word: string | undefined): readonly string[] {
  return (word ?? '').split(/[\s=@,'"]+/).map((part) => part.replace(/:(?![/\\\d]).*$/s, ''));
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
const PORTS: Readonly<Record<string, string>> = {
  'http:': '80',
  'https:': '443',
  'ws:': '80',
  'wss:': '443',
};

function hostOf(url: string): { readonly host: string; readonly port: string } | undefined {
  const scheme = BEGINS_WITH_SCHEME.exec(url)?.[1]?.toLowerCase();
  // The standard does not normalize the host of a scheme that it does not know.
  const isOther = scheme !== undefined && PORTS[scheme] === undefined;
  const web = isOther ? `http:${url.slice(scheme.length)}` : url;
  const { hostname = '', port, protocol = '' } = URL.canParse(web) ? new URL(web) : {};
  if (hostname === '') return undefined;
  return { host: plainHost(hostname), port: port || (isOther ? '' : (PORTS[protocol] ?? '')) };
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

function pathMatcher(pattern: string, isStrict: boolean): (access: ResourceAccess) => Fit {
  const form = isStrict ? (path: string) => path : foldedPath;
  const isOutside = pattern.startsWith('/');
  const fits = globMatcher(form(pattern));
  const reaches = globReaches(form(pattern));
  const fitPath = (path: string, isDeep = false): Fit => {
    // What is allowed within the folder is not allowed elsewhere; what is denied is, where it may be anywhere.
    if (isOutside !== path.startsWith('/') && (isStrict || isOutside)) return 'no';
    const names = form(path).replace(/^\//, '');
    if (fits(names)) return 'yes';
    return isDeep && reaches(names) ? 'maybe' : 'no';
  };
  return (access) => {
    if (access.action === 'read' || access.action === 'write') {
      const fit = fitPath(access.path, access.isDeep);
      const isElsewhere = fit === 'no' && isOutside && access.absolute !== undefined;
      return isElsewhere ? fitPath(access.absolute, access.isDeep) : fit;
    }
    if (access.action !== 'run' || isStrict) return 'no';
    const found = (access.mentions ?? []).map((path) =>
      fitPath(path.replace(/(?<=.)\/$/, ''), path.endsWith('/')),
    );
    if (found.includes('yes')) return 'yes';
    const isMaybe = found.includes('maybe') || access.words.includes(undefined);
    // A sandbox keeps away what only may fit.
    return isMaybe && access.isSandboxed !== true ? 'maybe' : 'no';
  };
}

type Words = Extract<ResourceAccess, { action: 'run' }>['words'];

/** A rule that allows fits all words, or with ` *` at its end the first ones; one that asks or denies, the first ones. */
function commandMatcher(command: string, isStrict: boolean): (words: Words) => Fit {
  const given = command.trim().split(/\s+/);
  const isPrefix = given.length > 1 && /^\*{1,2}$/.test(given.at(-1) ?? '');
  const wanted = (isPrefix ? given.slice(0, -1) : given).map((word) => {
    const fits = textMatcher(isStrict ? word : foldedPath(word));
    return (text: string) => fits(isStrict ? text : foldedPath(text));
  });
  return (words) => {
    if (isStrict && (words.includes(undefined) || (!isPrefix && words.length > wanted.length))) return 'no';
    let places = new Set([0]);
    let isMaybe = false;
    for (const [index, fits] of wanted.entries()) {
      if (!isStrict && index > 0) passOptions(places, words);
      const next = new Set<number>();
      for (const at of places) {
        const word = words[at];
        // It may be any word, or several, or none.
        if (word === undefined) isMaybe ||= at < words.length;
        // `/bin/rm` and `./rm` are `rm`, for what denies it.
        else if (
          fits(index > 0 || isStrict || given[0]?.includes('/') ? word : (word.split('/').at(-1) ?? ''))
        )
          next.add(at + 1);
      }
      places = next;
      if (places.size === 0) return isMaybe && !isStrict ? 'maybe' : 'no';
    }
    return 'yes';
  };
}

/** Options may stand between the words of what asks or denies; which of them take the next word, programs say. */
function passOptions(places: Set<number>, words: Words): void {
  const isOption = (at: number): boolean => /^[-+]/.test(words[at] ?? '');
  for (const at of places) {
    if (!isOption(at)) continue;
    places.add(at + 1);
    if (at + 1 < words.length && !isOption(at + 1) && !words[at]?.includes('=')) places.add(at + 2);
  }
}
