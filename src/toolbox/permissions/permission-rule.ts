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

/** What happens to a call. */
export type Permission = 'allow' | 'ask' | 'deny';

/**
 * A rule about calls. Everything that it names has to fit. A rule with `action`, `path`, `command` or `host` is about
 * each resource that a call would access, one without about the call as a whole.
 *
 * @example
 * ```ts
 * const rule: PermissionRule = { decision: 'deny', path: '**\/.env*', reason: 'secrets stay where they are' };
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
  /** For whoever is asked, and for the model if the rule denies. */
  readonly reason?: string;
}

const PATTERN: OptionRule = {
  accepts: (value) => {
    try {
      return FILLED_TEXT.accepts(value) && globMatcher(String(value)) !== undefined;
    } catch {
      return false;
    }
  },
  fix: "a pattern: 'src/**'",
  schema: { type: 'string', pattern: '\\S' },
};

const EXAMPLE = "{ decision: 'allow', path: 'src/**' }";

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
    { fix: EXAMPLE, meant: { allow: "decision: 'allow'", deny: "decision: 'deny'" } },
  ),
  `[${EXAMPLE}]`,
);

/** As {@link RULES}; a rule that allows everything has to state it. */
export const EXPLICIT_RULES: OptionRule = {
  ...RULES,
  accepts: (value) => RULES.accepts(value) && !(value as readonly unknown[]).some(allowsImplicitly),
  explain: (value, option) => {
    const fix = `${option}: [${EXAMPLE}], or [{ decision: 'allow', tool: '*' }] where everything is meant`;
    const implicit = (Array.isArray(value) ? value : []).flatMap((rule: unknown, index) => {
      const problem = `${option}[${index}] allows everything without saying so`;
      return allowsImplicitly(rule) ? [{ option, problem, fix }] : [];
    });
    return [...(RULES.explain?.(value, option) ?? []), ...implicit];
  },
};

function allowsImplicitly(rule: unknown): boolean {
  if (!isRecord(rule) || rule.decision !== 'allow') return false;
  const { decision: _1, reason: _2, ...about } = rule;
  return Object.values(about).every((part) => part === undefined);
}

/** The rules that an approval of a call stands for: the same paths, and for everything else the same call. */
export function rulesOfYes(
  tool: string,
  args: Readonly<Record<string, unknown>>,
  accesses: readonly ResourceAccess[],
): readonly Omit<PermissionRule, 'decision'>[] {
  const literal = (text: string): string => text.replace(/[*?[\]{}\\]/g, '\\$&');
  const exact = Object.entries(args).map(([name, value]) => [
    name,
    typeof value === 'string' ? value.replace(/[*\\]/g, '\\$&') : value,
  ]);
  const sameCall = { tool: literal(tool), arguments: Object.fromEntries(exact) };
  const rules = accesses.map((access): Omit<PermissionRule, 'decision'> => {
    if (access.action !== 'read' && access.action !== 'write') return sameCall;
    const path = literal(access.path) + (access.isDeep ? '/**' : '');
    return { tool: literal(tool), action: access.action, path };
  });
  const byText = new Map(rules.map((rule) => [JSON.stringify(rule), rule]));
  return rules.length === 0 ? [sameCall] : [...byText.values()];
}

/** What a rule is compared with: a call, and one of the resources that it would access. */
export interface Subject {
  readonly tool: string;
  readonly arguments: JsonObject;
  /** `undefined` for the call as a whole. */
  readonly access?: ResourceAccess;
  /** The tool has stated that it accesses nothing. */
  readonly accessesNothing?: boolean;
}

/** `maybe`: of words that are not known yet, or of a folder with something in it that would fit. */
type Fit = 'yes' | 'maybe' | 'no';

/** A rule that is ready to be compared with calls. */
export interface ReadyRule {
  readonly rule: PermissionRule;
  /** The higher, the more specific. */
  readonly weight: number;
  fits(subject: Subject): Fit;
}

/** Makes a rule ready. A rule that denies or asks also fits other capitals and Unicode forms of the same name. */
export function readyRule(rule: PermissionRule): ReadyRule {
  const fitsTool = textMatcher(rule.tool ?? '*');
  const args = Object.entries(rule.arguments ?? {}).map(
    ([name, wanted]) => [name, valueMatcher(wanted)] as const,
  );
  const isAboutAccess = [rule.action, rule.path, rule.command, rule.host].some((part) => part !== undefined);
  const fitAccess = accessMatcher(rule);
  return {
    rule,
    weight: weightOf(rule),
    fits: ({ tool, arguments: given, access }) => {
      if (!fitsTool(tool)) return 'no';
      if (!args.every(([name, fits]) => Object.hasOwn(given, name) && fits(given[name]))) return 'no';
      if (!isAboutAccess) return 'yes';
      return access === undefined ? 'no' : fitAccess(access);
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

/** Of `path`, `command` and `host`, the first that the rule names decides. */
function accessMatcher(rule: PermissionRule): (access: ResourceAccess) => Fit {
  const isStrict = rule.decision === 'allow';
  const { action } = rule;
  const fitPart =
    (rule.path !== undefined && pathMatcher(rule.path, isStrict)) ||
    (rule.command !== undefined && commandMatcher(rule.command, isStrict)) ||
    (rule.host !== undefined && hostMatcher(rule.host, isStrict)) ||
    (() => 'yes' as const);
  return (access) => {
    if (action === undefined || action === access.action) return fitPart(access);
    // A program may do anything with the paths and hosts that it is given.
    if (access.action !== 'run' || isStrict) return 'no';
    const isOfAction =
      action === 'open'
        ? rule.host !== undefined
        : rule.path !== undefined && (action === 'read' || access.isReadOnly !== true);
    return isOfAction ? fitPart(access) : 'no';
  };
}

/** Pattern and address are brought into the one form that the URL standard has for them. */
function hostMatcher(pattern: string, isStrict: boolean): (access: ResourceAccess) => Fit {
  const fits = textMatcher(plainPattern(pattern.toLowerCase()));
  const fitUrl = (url: string): Fit => {
    if (/^(file|data|blob|about):/i.test(url)) return 'no';
    const given = hostOf(isStrict || BEGINS_WITH_SCHEME.test(url) ? url : `http://${url}`);
    if (given === undefined) return isStrict ? 'no' : 'maybe';
    const { host, port } = given;
    if (fits(host) || (port !== '' && fits(`${host}:${port}`))) return 'yes';
    // Some programs expand that themselves.
    return !isStrict && /[{}*,]/.test(host) ? 'maybe' : 'no';
  };
  return (access) => {
    if (access.action === 'open') return fitUrl(access.url);
    if (access.action !== 'run' || isStrict) return 'no';
    // A hint: what a program opens by itself is not among its words. `--url=http://a/b`, `git@a:b`, `a.test`.
    const addresses = access.words
      .flatMap((word = '') => word.split(/[\s=@,'"]+/))
      .map((part) => part.replace(/:(?![/\\\d]).*$/s, ''))
      .filter((address) => address.includes('://') || pattern.includes('.'));
    return addresses.some((address) => fitUrl(address) === 'yes') ? 'yes' : 'no';
  };
}

const BEGINS_WITH_SCHEME = /^([a-z][a-z0-9+.-]*:)[/\\]/i;
const PORTS = new Map(Object.entries({ 'http:': '80', 'https:': '443', 'ws:': '80', 'wss:': '443' }));

/** Without the dot of the root; an IPv4 address in the form of IPv6 is that IPv4 address. */
function hostOf(url: string): { readonly host: string; readonly port: string } | undefined {
  const scheme = BEGINS_WITH_SCHEME.exec(url)?.[1]?.toLowerCase();
  // The standard does not normalize the host of a scheme that it does not know.
  const isOther = scheme !== undefined && !PORTS.has(scheme);
  const web = isOther ? `http:${url.slice(scheme.length)}` : url;
  const { hostname = '', port, protocol = '' } = URL.canParse(web) ? new URL(web) : {};
  if (hostname === '') return undefined;
  const mapped = /^\[::ffff:([\da-f]+):([\da-f]+)\]$/.exec(hostname)?.slice(1) ?? [];
  const bytes = mapped.map((part) => Number.parseInt(part, 16)).flatMap((part) => [part >> 8, part & 255]);
  const host = bytes.length > 0 ? bytes.join('.') : hostname.replace(/\.$/, '');
  return { host, port: port || (isOther ? '' : (PORTS.get(protocol) ?? '')) };
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
    // What is allowed within the folder is not allowed elsewhere; what is denied is denied wherever it may be.
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
    const { mentions = [], words, isSandboxed = false } = access;
    const found = mentions.map((path) => fitPath(path.replace(/(?<=.)\/$/, ''), path.endsWith('/')));
    if (found.includes('yes')) return 'yes';
    // A sandbox closes what only may fit.
    return !isSandboxed && (found.includes('maybe') || words.includes(undefined)) ? 'maybe' : 'no';
  };
}

/** A rule that allows fits all words, or with ` *` at its end the first ones; one that asks or denies, the first ones. */
function commandMatcher(command: string, isStrict: boolean): (access: ResourceAccess) => Fit {
  const given = command.trim().split(/\s+/);
  const isPrefix = given.length > 1 && /^\*{1,2}$/.test(given.at(-1) ?? '');
  const form = isStrict ? (word: string) => word : foldedPath;
  const wanted = (isPrefix ? given.slice(0, -1) : given).map((word) => textMatcher(form(word)));
  // `/bin/rm` and `./rm` are `rm`, for a rule that denies it.
  const byName = !isStrict && given[0]?.includes('/') === false;
  return (access) => {
    if (access.action !== 'run') return 'no';
    const { words } = access;
    if (isStrict && (words.includes(undefined) || (!isPrefix && words.length > wanted.length))) return 'no';
    let places = new Set([0]);
    let isMaybe = false;
    for (const [index, fits] of wanted.entries()) {
      if (!isStrict && index > 0) passOptions(places, words);
      const next = new Set<number>();
      for (const at of places) {
        const word = index === 0 && byName ? words[at]?.split('/').at(-1) : words[at];
        if (word !== undefined && fits(form(word))) next.add(at + 1);
        // It may be any word, or several, or none.
        if (word === undefined) isMaybe ||= at < words.length;
      }
      places = next;
      if (places.size === 0) return isMaybe && !isStrict ? 'maybe' : 'no';
    }
    return 'yes';
  };
}

/** Options may stand between the words of what asks or denies; only the program knows which of them take the next word. */
function passOptions(places: Set<number>, words: readonly (string | undefined)[]): void {
  const isOption = (at: number): boolean => /^[-+]/.test(words[at] ?? '');
  for (const at of places) {
    if (!isOption(at)) continue;
    places.add(at + 1);
    if (at + 1 < words.length && !isOption(at + 1) && !words[at]?.includes('=')) places.add(at + 2);
  }
}
