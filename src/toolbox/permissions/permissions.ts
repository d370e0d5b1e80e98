import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, isAbsolute, posix } from 'node:path';
import { OWNER, type PolicyRemember, type PolicyRequest, type ToolPolicy } from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { RememberScope } from '../../core/contract/standing-approvals.js';
import type { ToolContext } from '../../core/contract/tool-context.js';
import type { ResourceAccess } from '../../core/contract/touch.js';
import { checkOptions, InvalidOptionsError } from '../../core/errors/author-fault.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { withFileLock } from '../../core/kernel/file-lock.js';
import { isRecord, ownerText, parsedJson, plainJson } from '../../core/kernel/json.js';
import { nodeCrypto } from '../../core/kernel/node-module.js';
import {
  either,
  FILLED_TEXT,
  FUNCTION,
  listOf,
  type OptionFault,
  type OptionRule,
  objectOf,
  oneOf,
  optionFaults,
  optionTable,
  protecting,
  RECORD,
  required,
  TEXT,
} from '../../core/kernel/options.js';
import { visibleLine } from '../../core/kernel/visible-text.js';
import { isHostPattern } from '../network/host-pattern.js';
import {
  foldedPath,
  ifPossible,
  isOutside,
  leavesFolder,
  PROTECTED_NAMES,
  pathFrom,
  realPathOf,
} from '../paths/folder-path.js';
import {
  globLiteral,
  globMatcher,
  globReaches,
  PATH_PATTERN,
  textMatcher,
  withoutLinks,
} from '../paths/glob.js';

/**
 * The scope of an approval: one session, or all sessions of a user. A session is that of an `owner`; without it, that
 * of calls without an owner.
 */
export type YesScope = { readonly session: string; readonly owner?: unknown } | { readonly user: string };

/** An approval that applies to all calls that match its rule. */
export interface StandingApproval {
  /** The id for `revoke`. */
  readonly id: string;
  readonly rule: PermissionRule;
  readonly scope: YesScope;
  /** When it was given, ISO 8601. */
  readonly given: string;
  /** When it expires, ISO 8601; default: never. */
  readonly until?: string;
}

/** @deprecated The old name of {@link StandingApproval}. */
export type StandingYes = StandingApproval;

const ABOUT =
  'Calls that match one of these entries are made without asking. Remove an entry to be asked again. Rules that deny take precedence over all entries.';

const SCOPES = either(
  objectOf<{ session: string; owner?: unknown }>(
    { session: required(FILLED_TEXT), owner: OWNER },
    { fix: "{ session: '…' }" },
  ),
  objectOf<{ user: string }>({ user: required(FILLED_TEXT) }, { fix: "{ user: '…' }" }),
);
const ENTRY = optionTable<StandingApproval>('an entry', {
  id: required(FILLED_TEXT),
  rule: required({
    accepts: (value) => RULES.accepts([value]) && isRecord(value) && value.decision === 'allow',
    fix: "{ decision: 'allow', … }",
  }),
  scope: required({ accepts: SCOPES.accepts, fix: SCOPES.fix }),
  given: required(FILLED_TEXT),
  until: FILLED_TEXT,
});

/** Stores approvals in memory, or in a file that people can read and edit. */
class StandingApprovals {
  #inMemory: readonly StandingApproval[] = [];

  constructor(private readonly file: string | undefined) {}

  /**
   * All valid approvals. The file is read each time, because its time and size may not change between quick writes.
   *
   * @throws Error if the file is invalid.
   */
  all(): readonly StandingApproval[] {
    const entries = this.file === undefined ? this.#inMemory : entriesIn(this.file);
    return entries.filter(({ until }) => until === undefined || Date.parse(until) > Date.now());
  }

  /** Adds an approval, or replaces that of the same rule and scope. */
  add(approval: Omit<StandingApproval, 'id'>): StandingApproval {
    const about = JSON.stringify([approval.rule, approval.scope]);
    const id = nodeCrypto().hash('sha256', about).slice(0, 12);
    const entry = { id, ...approval };
    this.#change((entries) => [...entries.filter((other) => other.id !== id), entry]);
    return entry;
  }

  /** Removes an approval; returns whether it existed. */
  remove(id: string): boolean {
    let wasThere = this.all().some((entry) => entry.id === id);
    if (wasThere)
      this.#change((entries) => {
        wasThere = entries.some((entry) => entry.id === id);
        return entries.filter((entry) => entry.id !== id);
      });
    return wasThere;
  }

  /** Uses a lock, so that no process restores what another one removes. */
  #change(change: (entries: readonly StandingApproval[]) => readonly StandingApproval[]): void {
    const { file } = this;
    if (file === undefined) {
      this.#inMemory = change(this.all());
      return;
    }
    mkdirSync(dirname(file), { recursive: true });
    const draft = `${file}.${crypto.randomUUID()}.tmp`;
    const write = (isHeld: () => boolean): boolean => {
      const text = JSON.stringify({ about: ABOUT, entries: change(this.all()) }, null, 2);
      writeFileSync(draft, `${text}\n`, { mode: 0o600, flush: true });
      const isStillHeld = isHeld();
      if (isStillHeld) renameSync(draft, file);
      return isStillHeld;
    };
    // If the lock has expired meanwhile, start again.
    while (!withFileLock(file, write));
  }
}

function entriesIn(file: string): readonly StandingApproval[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    // The file does not exist yet.
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new Error(`${file} cannot be read. Repair it, or remove it.`, { cause });
  }
  const json = parsedJson(text);
  if (!isRecord(json) || !Array.isArray(json.entries))
    throw new Error(`${file} is not JSON with a list of entries. Repair it, or remove it.`);
  for (const [index, entry] of json.entries.entries()) {
    const [fault] = optionFaults(entry, ENTRY);
    if (fault !== undefined)
      throw new Error(`${file}, entry ${index + 1}: ${fault.problem}. Write instead: ${fault.fix}`);
  }
  return json.entries as StandingApproval[];
}

/** The decision about a call. */
export type Permission = 'allow' | 'ask' | 'deny';

/**
 * A rule about calls; all of its conditions must match. A rule with `action`, `path`, `command` or `host` applies to
 * each resource that a call would access, a rule without them to the call as a whole. A rule has at most one of `path`,
 * `command` and `host`, because a resource is only one of them.
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
  /** Values of arguments by name. In strings, `*` stands for any characters; other values must be equal. */
  readonly arguments?: Readonly<Record<string, unknown>>;
  readonly action?: ResourceAccess['action'];
  /** A pattern of paths, such as `src/**`. If it starts with `/`, it is absolute: in the folder or outside of it. */
  readonly path?: string;
  /**
   * A program and its arguments, word by word; within a word, `*` stands for any characters. An `allow` rule must match
   * the whole command; further words are allowed only if the rule ends in ` *`. Other rules match whatever words
   * follow.
   */
  readonly command?: string;
  /**
   * A pattern of host names, such as `*.example.com`. With a port, as in `example.com:8080`, only that port matches.
   */
  readonly host?: string;
  /** For the person who approves, and for the model if the rule denies. */
  readonly reason?: string;
}

const PATTERN: OptionRule = {
  accepts: (value) =>
    FILLED_TEXT.accepts(value) && ifPossible(() => globMatcher(String(value))) !== undefined,
  fix: "a pattern: 'src/**'",
  schema: { type: 'string', pattern: '\\S' },
};

/** The pattern of a host may have `*` anywhere; with a name or a number for it, it must be a host. */
const HOST_PATTERN: OptionRule = {
  accepts: (value) =>
    FILLED_TEXT.accepts(value) &&
    ['x', '1'].some((text) => isHostPattern(withBrackets(String(value)).replaceAll('*', text))),
  fix: "the name of a host, without scheme and path: 'example.com' or '*.example.com'",
  schema: { type: 'string', pattern: '\\S' },
};

const EXAMPLE = "{ decision: 'allow', path: 'src/**' }";

const CONDITIONS = objectOf<PermissionRule>(
  {
    decision: required(oneOf('allow', 'ask', 'deny')),
    tool: PATTERN,
    arguments: RECORD,
    action: oneOf('read', 'write', 'run', 'open', 'unknown'),
    path: PATH_PATTERN,
    command: FILLED_TEXT,
    host: HOST_PATTERN,
    reason: TEXT,
  },
  { fix: EXAMPLE, meant: { allow: "decision: 'allow'", deny: "decision: 'deny'" } },
);

/** The actions of the resources that a condition can match. */
const ACTIONS_OF = { path: ['read', 'write', 'run'], command: ['run'], host: ['open', 'run'] } as const;

/** Conditions that one resource cannot match together. */
function contradictionIn(rule: unknown, option: string): readonly OptionFault[] {
  if (!isRecord(rule)) return [];
  const { action } = rule;
  const given = (['path', 'command', 'host'] as const).filter((name) => rule[name] !== undefined);
  const [name, other] = given;
  if (name === undefined) return [];
  if (other !== undefined) {
    const problem = `${option} has ${given.join(' and ')}, which one resource cannot match together`;
    return [{ option, problem, fix: `a rule with ${name}, and a rule with ${other}` }];
  }
  const actions: readonly unknown[] = ACTIONS_OF[name];
  if (action === undefined || actions.includes(action)) return [];
  const problem = `${option} has action '${action}' and ${name}, which one resource cannot match together`;
  return [{ option, problem, fix: `action: ${actions.map((one) => `'${one}'`).join(' or ')}, or no action` }];
}

/** Option rule for lists of rules. */
const RULES: OptionRule = listOf(
  {
    ...CONDITIONS,
    accepts: (value) => CONDITIONS.accepts(value) && contradictionIn(value, '').length === 0,
    explain: (value, option) => [
      ...(CONDITIONS.explain?.(value, option) ?? []),
      ...contradictionIn(value, option),
    ],
  },
  `[${EXAMPLE}]`,
);

/** Like {@link RULES}, but a rule that allows everything must say so explicitly. */
const EXPLICIT_RULES: OptionRule = {
  ...RULES,
  accepts: (value) => RULES.accepts(value) && !(value as readonly unknown[]).some(allowsImplicitly),
  explain: (value, option) => {
    const fix = `${option}: [${EXAMPLE}], or [{ decision: 'allow', tool: '*' }] to allow everything`;
    const implicit = (Array.isArray(value) ? value : []).flatMap((rule: unknown, index) => {
      const problem = `${option}[${index}] allows everything implicitly`;
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

/** The rules that an approval stands for: the same paths; for everything else, the same call. */
export function rulesOfYes(
  tool: string,
  args: Readonly<Record<string, unknown>>,
  accesses: readonly ResourceAccess[],
): readonly Omit<PermissionRule, 'decision'>[] {
  const exact = Object.entries(args).map(([name, value]) => [
    name,
    typeof value === 'string' ? value.replace(/[*\\]/g, '\\$&') : value,
  ]);
  const sameCall = { tool: globLiteral(tool), arguments: Object.fromEntries(exact) };
  const rules = accesses.map((access): Omit<PermissionRule, 'decision'> => {
    if (access.action !== 'read' && access.action !== 'write') return sameCall;
    if (leavesFolder(access.path)) return sameCall;
    const path = globLiteral(access.path) + (access.isDeep ? '/**' : '');
    return { tool: globLiteral(tool), action: access.action, path };
  });
  const byText = new Map(rules.map((rule) => [JSON.stringify(rule), rule]));
  return rules.length === 0 ? [sameCall] : [...byText.values()];
}

/** What a rule is matched against: a call, and one of the resources that it would access. */
interface Subject {
  readonly tool: string;
  readonly arguments: JsonObject;
  /** `undefined` for the call as a whole. */
  readonly access?: ResourceAccess;
  /** The tool declares that it accesses nothing. */
  readonly accessesNothing?: boolean;
}

/** `maybe`: a word is unknown before the command runs, or a folder may contain a match. */
type Fit = 'yes' | 'maybe' | 'no';

/** A compiled rule. */
interface ReadyRule {
  readonly rule: PermissionRule;
  /** Greater for more specific rules; the working folder in an absolute path does not count. */
  weight(access: ResourceAccess | undefined): number;
  fits(subject: Subject): Fit;
}

/** Compiles a rule. Rules that deny or ask ignore case and Unicode forms in names. */
function readyRule(rule: PermissionRule): ReadyRule {
  const { path, command, host, action } = rule;
  const fitsTool = textMatcher(rule.tool ?? '*');
  const args = Object.entries(rule.arguments ?? {}).map(
    ([name, wanted]) => [name, valueMatcher(wanted)] as const,
  );
  // A path, command or host is more specific than an action, an action than a tool; longer text decides ties.
  const letters = (value: unknown): number => String(value ?? '').replace(/[*?]/g, '').length;
  const about = [path, command, host].filter((part) => part !== undefined);
  const kind =
    (about.length > 0 ? 4_000_000 : 0) + (action === undefined ? 0 : 5) + (rule.tool === undefined ? 0 : 3);
  const values = Object.values(rule.arguments ?? {});
  const named = values.reduce((sum: number, value) => sum + 1 + letters(value), 0);
  const isAboutAccess = about.length > 0 || action !== undefined;
  const fitAccess = accessMatcher(rule);
  return {
    rule,
    weight: (access) => {
      const shown = about.join('').slice(path === undefined ? 0 : folderStart(path, access).length);
      return kind + Math.min(letters(shown), 900) * 1_000 + named * 10;
    },
    fits: ({ tool, arguments: given, access }) => {
      if (!fitsTool(tool)) return 'no';
      if (!args.every(([name, fits]) => Object.hasOwn(given, name) && fits(given[name]))) return 'no';
      if (!isAboutAccess) return 'yes';
      return access === undefined ? 'no' : fitAccess(access);
    },
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
    // A program may do anything with the paths and hosts in its arguments.
    if (access.action !== 'run' || isStrict) return 'no';
    const isOfAction =
      action === 'open'
        ? rule.host !== undefined
        : rule.path !== undefined && (action === 'read' || access.isReadOnly !== true);
    return isOfAction ? fitPart(access) : 'no';
  };
}

/** Patterns and URLs are compared in the normalized form of the URL standard. */
function hostMatcher(pattern: string, isStrict: boolean): (access: ResourceAccess) => Fit {
  const fits = textMatcher(plainPattern(pattern.toLowerCase()));
  const fitUrl = (url: string): Fit => {
    if (/^(file|data|blob|about):/i.test(url)) return 'no';
    const given = hostOf(isStrict || BEGINS_WITH_SCHEME.test(url) ? url : `http://${url}`);
    if (given === undefined) return isStrict ? 'no' : 'maybe';
    const { host, port } = given;
    if (fits(host) || (port !== '' && fits(`${host}:${port}`))) return 'yes';
    // Some programs, such as curl, expand these characters.
    return !isStrict && /[{}*,]/.test(host) ? 'maybe' : 'no';
  };
  return (access) => {
    if (access.action === 'open') return fitUrl(access.url);
    if (access.action !== 'run' || isStrict) return 'no';
    // Only a hint, because a program may open other hosts. Finds `--url=http://a/b`, `git@a:b`, `a.test`.
    const addresses = access.words
      .flatMap((word = '') => word.split(/[\s=@,'"]+/))
      .map((part) => part.replace(/:(?![/\\\d]).*$/s, ''))
      .filter((address) => address.includes('://') || pattern.includes('.'));
    return addresses.some((address) => fitUrl(address) === 'yes') ? 'yes' : 'no';
  };
}

const BEGINS_WITH_SCHEME = /^([a-z][a-z0-9+.-]*:)[/\\]/i;
const PORTS = new Map(Object.entries({ 'http:': '80', 'https:': '443', 'ws:': '80', 'wss:': '443' }));

/** Without a final dot; an IPv4-mapped IPv6 address becomes the IPv4 address. */
function hostOf(url: string): { readonly host: string; readonly port: string } | undefined {
  const scheme = BEGINS_WITH_SCHEME.exec(url)?.[1]?.toLowerCase();
  // The URL standard does not normalize hosts of unknown schemes.
  const isOther = scheme !== undefined && !PORTS.has(scheme);
  const web = isOther ? `http:${url.slice(scheme.length)}` : url;
  const { hostname = '', port, protocol = '' } = URL.canParse(web) ? new URL(web) : {};
  if (hostname === '') return undefined;
  const mapped = /^\[::ffff:([\da-f]+):([\da-f]+)\]$/.exec(hostname)?.slice(1) ?? [];
  const bytes = mapped.map((part) => Number.parseInt(part, 16)).flatMap((part) => [part >> 8, part & 255]);
  const host = bytes.length > 0 ? bytes.join('.') : hostname.replace(/\.$/, '');
  return { host, port: port || (isOther ? '' : (PORTS.get(protocol) ?? '')) };
}

/** An IPv6 address in brackets, as in URLs. */
function withBrackets(pattern: string): string {
  return /^[^[\]]*:[^[\]]*:[^[\]]*$/.test(pattern) ? `[${pattern}]` : pattern;
}

function plainPattern(pattern: string): string {
  const [, name = '', port = ''] = /^(.*?)(:[\d*]+)?$/.exec(withBrackets(pattern)) ?? [];
  const read = (text: string) => (/[*?\\]/.test(text) ? undefined : hostOf(`http://${text}`)?.host);
  const labels = name.split('.').map((label) => (/[^ -~]/.test(label) ? (read(label) ?? label) : label));
  return (read(name) ?? labels.join('.').replace(/\.$/, '')) + port;
}

/** The beginning of an absolute pattern that is the working folder of an access; empty if it does not begin so. */
function folderStart(pattern: string, access: ResourceAccess | undefined): string {
  if (access === undefined || !('folder' in access) || access.folder === undefined) return '';
  const start = `${globLiteral(access.folder).replace(/\/$/, '')}/`;
  return pattern.startsWith(start) ? start : '';
}

function pathMatcher(pattern: string, isStrict: boolean): (access: ResourceAccess) => Fit {
  const form = isStrict ? (path: string) => path : foldedPath;
  const isOfSystem = isAbsolute(pattern);
  const patterns = isOfSystem && !isStrict ? [pattern, withoutLinks(pattern)] : [pattern];
  const fits = patterns.map((one) => globMatcher(form(one)));
  const reaches = patterns.map((one) => globReaches(form(one)));
  const fitPath = (given: string, access: ResourceAccess, isDeep = false): Fit => {
    const folder = 'folder' in access ? access.folder : undefined;
    // An `allow` rule applies in the folder only if it names the folder itself, without wildcards.
    const isAbout = isOfSystem && (!isStrict || folderStart(pattern, access) !== '');
    const isInside = !isAbsolute(given) && folder !== undefined;
    const path = isAbout && isInside ? posix.join(folder, given) : given;
    // An `allow` rule for the folder does not apply outside of it; a `deny` rule without `/` applies everywhere.
    if (isOfSystem !== isOutside(path) && (isStrict || isOfSystem)) return 'no';
    if (isStrict && leavesFolder(path)) return 'no';
    const names = form(path).replace(/^\//, '');
    if (fits.some((one) => one(names))) return 'yes';
    return isDeep && reaches.some((one) => one(names)) ? 'maybe' : 'no';
  };
  return (access) => {
    if (access.action === 'read' || access.action === 'write') {
      const fit = fitPath(access.path, access, access.isDeep);
      const isElsewhere = fit === 'no' && isOfSystem && access.absolute !== undefined;
      return isElsewhere ? fitPath(access.absolute, access, access.isDeep) : fit;
    }
    if (access.action !== 'run' || isStrict) return 'no';
    const { mentions = [], words, isSandboxed = false } = access;
    const found = mentions.map((path) => fitPath(path.replace(/(?<=.)\/$/, ''), access, path.endsWith('/')));
    if (found.includes('yes')) return 'yes';
    // A sandbox enforces what only may match.
    return !isSandboxed && (found.includes('maybe') || words.includes(undefined)) ? 'maybe' : 'no';
  };
}

/** An `allow` rule must match all words, or a prefix if it ends in ` *`; other rules match a prefix. */
function commandMatcher(command: string, isStrict: boolean): (access: ResourceAccess) => Fit {
  const given = command.trim().split(/\s+/);
  const isPrefix = given.length > 1 && /^\*{1,2}$/.test(given.at(-1) ?? '');
  const form = isStrict ? (word: string) => word : foldedPath;
  const wanted = (isPrefix ? given.slice(0, -1) : given).map((word) => textMatcher(form(word)));
  // A rule that denies `rm` also matches `/bin/rm` and `./rm`.
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
        // An unknown word may become one word, several, or none.
        if (word === undefined) isMaybe ||= at < words.length;
      }
      places = next;
      if (places.size === 0) return isMaybe && !isStrict ? 'maybe' : 'no';
    }
    return 'yes';
  };
}

/** Lets options appear between the words of `ask` and `deny` rules. Any of them may take the next word as its value. */
function passOptions(places: Set<number>, words: readonly (string | undefined)[]): void {
  const isOption = (at: number): boolean => /^[-+]/.test(words[at] ?? '');
  for (const at of places) {
    if (!isOption(at)) continue;
    places.add(at + 1);
    if (at + 1 < words.length && !isOption(at + 1) && !words[at]?.includes('=')) places.add(at + 2);
  }
}

/**
 * The default decision. `read-only`: reading is allowed, the rest is denied. `ask`: reading is allowed, the rest asks.
 * `auto`: everything is allowed, but commands only in a sandbox (`sandboxShell`, or a shell with
 * `sandbox: 'external'`); without a sandbox they are denied. Access outside of the folder asks in every mode.
 */
export type PermissionMode = 'read-only' | 'ask' | 'auto';

/** Options of {@link Permissions}. */
export interface PermissionsOptions {
  /** Default: `ask`. */
  readonly mode?: PermissionMode;
  /** Rules of the user or the application. */
  readonly rules?: readonly PermissionRule[];
  /** Untrusted rules that come with the folder. They can deny and ask, but never allow. */
  readonly folderRules?: readonly PermissionRule[];
  /** File for standing approvals; default: in memory. Keep it outside of the folder: it belongs to the user. */
  readonly file?: string;
  /** The session of a call; default: `context.conversationId`, or `context.chatId`. */
  readonly sessionOf?: (context: ToolContext) => string | undefined;
  /** The user of a call; default: none. */
  readonly userOf?: (context: ToolContext) => string | undefined;
}

/** Whose call it is, for standing approvals. */
interface Whose {
  readonly session: string | undefined;
  readonly owner: unknown;
  readonly user: string | undefined;
}

/** Why access to one resource is allowed, asked about or denied. */
export interface Reason {
  readonly decision: Permission;
  /** `undefined` for the call as a whole. */
  readonly touch?: ResourceAccess;
  readonly by: 'rule' | 'folder rule' | 'standing yes' | 'mode' | 'always';
  readonly rule?: PermissionRule;
  /** For people: `writes 'src/a.ts': mode 'ask' asks about it`. */
  readonly text: string;
}

/** The decision about a call, with its reasons. */
export interface Verdict {
  readonly decision: Permission;
  /** A reason for each resource that it would access; the decisive ones come first. */
  readonly reasons: readonly Reason[];
}

export const PERMISSIONS_OPTIONS = optionTable<PermissionsOptions>(
  'Permissions',
  {
    mode: protecting(oneOf('read-only', 'ask', 'auto')),
    rules: protecting(EXPLICIT_RULES),
    folderRules: protecting(RULES),
    file: protecting(FILLED_TEXT),
    sessionOf: FUNCTION,
    userOf: FUNCTION,
  },
  {
    policy: 'rules: […]',
    allow: "rules: [{ decision: 'allow', … }]",
    deny: "rules: [{ decision: 'deny', … }]",
  },
);

/** Writing to these paths asks, unless a rule names them. */
const PROTECTED = PROTECTED_NAMES.flatMap((name) => [`**/${name}`, `**/${name}/**`]).map((path) => {
  const reason = 'it can make programs run automatically';
  return readyRule({ decision: 'ask', action: 'write', path, reason });
});

const RANK = { allow: 0, ask: 1, deny: 2 };

/**
 * One policy for all tools: rules, a mode, and standing approvals. If any matching rule denies, the call is denied.
 * Otherwise the most specific rule decides; between equally specific rules, the one that asks. A call is allowed if
 * everything that it would access is allowed.
 *
 * @example
 * ```ts
 * const permissions = new Permissions({ mode: 'ask', rules: [{ decision: 'allow', path: 'src/**' }] });
 * const run = await runToolLoop({ provider, model: 'gpt-…', tools, policy: permissions.policy }, messages);
 * ```
 */
export class Permissions {
  /** The mode, which decides if no rule does. */
  readonly mode: PermissionMode;
  /** The file for standing approvals; `undefined` if they are in memory. */
  readonly file: string | undefined;
  readonly #rules: readonly ReadyRule[];
  readonly #folderRules: readonly ReadyRule[];
  readonly #approvals: StandingApprovals;
  readonly #whose: (context: ToolContext) => Whose;

  /** @throws InvalidOptionsError (521) with all faults, including those of the file. */
  constructor(options: PermissionsOptions = {}) {
    checkOptions(options, PERMISSIONS_OPTIONS);
    const { mode = 'ask', rules = [], folderRules = [], file, userOf } = options;
    const { sessionOf = ({ conversationId, chatId }) => conversationId ?? chatId } = options;
    this.mode = mode;
    this.file = file;
    this.#rules = rules.map(readyRule);
    this.#folderRules = folderRules.filter(({ decision }) => decision !== 'allow').map(readyRule);
    this.#approvals = new StandingApprovals(file);
    this.#whose = (context) => ({
      session: sessionOf(context),
      owner: context.owner,
      user: userOf?.(context),
    });
    try {
      this.#approvals.all();
    } catch (cause) {
      const problem = errorMessage(cause).replace(/\.$/, '');
      const fix = 'a valid file, or a new path';
      throw new InvalidOptionsError([{ where: 'Permissions', option: 'file', problem, fix }]);
    }
  }

  /** The policy for the loop, a registry, or MCP. */
  readonly policy: ToolPolicy = async (request) => {
    const { decision, reasons } = await this.explain(request);
    if (decision === 'allow') return true;
    const decisive = reasons.filter((one) => one.decision === decision);
    const reason = [...new Set(decisive.map(({ text }) => text))].join('; ');
    if (decision === 'deny') return { allow: false, reason };
    const remember = this.#rememberFor(request, decisive);
    return { ask: true, reason, ...(remember && { remember }) };
  };

  /**
   * The decision about a call, with its reasons. The call is not made.
   *
   * @throws InvalidOptionsError (521) if `tool` is a name instead of a definition.
   */
  async explain(request: PolicyRequest): Promise<Verdict> {
    if (!isRecord(request.tool)) {
      const fix = "tool: registry.get('place_order')";
      const problem = `tool is ${visibleLine(String(request.tool))}, not a definition`;
      throw new InvalidOptionsError([{ where: 'Permissions.explain', option: 'tool', problem, fix }]);
    }
    const stated = await accessOf(request);
    const accesses = stated === 'as annotated' ? [] : stated;
    const call = { tool: request.tool.name, arguments: request.arguments };
    const subjects: Subject[] = accesses.map((access) => ({ ...call, access }));
    if (accesses.length === 0) subjects.push({ ...call, accessesNothing: stated !== 'as annotated' });
    const { session, owner, user } = this.#whose(request.context);
    const approved = this.#approvals
      .all()
      .filter(({ scope }) => {
        if ('user' in scope) return scope.user === user;
        return scope.session === session && ownerText(scope.owner) === ownerText(owner);
      })
      .map(({ rule }) => readyRule(rule));
    const reasons = subjects.map((subject) => this.#decide(subject, request.tool, approved));
    reasons.sort((one, other) => RANK[other.decision] - RANK[one.decision]);
    return { decision: reasons[0]?.decision ?? 'deny', reasons };
  }

  /** Whether a call is denied whatever it accesses and whoever makes it: such a call need not be offered. */
  denies({ tool, arguments: args }: Pick<PolicyRequest, 'tool' | 'arguments'>): boolean {
    const subject = { tool: tool.name, arguments: args, accessesNothing: tool.touches !== undefined };
    return this.#decide(subject, tool, []).decision === 'deny';
  }

  /** Path patterns that rules deny or ask about for all tools, as options of a sandbox; `unwritable` may be read. */
  closedPaths(): { readonly unreadable: readonly string[]; readonly unwritable: readonly string[] } {
    const pathsOf = (isWrite: boolean): readonly string[] =>
      [...this.#rules, ...this.#folderRules].flatMap(({ rule }) => {
        const { decision, tool = '*', arguments: args, action, path = [] } = rule;
        const isClosed = decision !== 'allow' && tool === '*' && !args && (action === 'write') === isWrite;
        return isClosed ? path : [];
      });
    return { unreadable: pathsOf(false), unwritable: pathsOf(true) };
  }

  /**
   * Allows future calls that match a rule, for a session or a user. The approval is stored in the file, if there is
   * one.
   *
   * @throws InvalidOptionsError (521) if the rule does not allow.
   */
  remember(
    rule: Omit<PermissionRule, 'decision'>,
    scope: YesScope & { readonly until?: Date },
  ): StandingApproval {
    const { until, ...whose } = scope;
    const allowing: PermissionRule = { ...rule, decision: 'allow' };
    checkOptions({ rules: [allowing] }, PERMISSIONS_OPTIONS);
    const given = new Date().toISOString();
    const end = until && { until: until.toISOString() };
    return this.#approvals.add({ rule: allowing, scope: whose, given, ...end });
  }

  /** The valid standing approvals. */
  remembered(): readonly StandingApproval[] {
    return this.#approvals.all();
  }

  /** Revokes an approval; returns whether it existed. */
  revoke(id: string): boolean {
    return this.#approvals.remove(id);
  }

  /** The person who approves decides whether the approval stands, and for whom. */
  #rememberFor(request: PolicyRequest, asked: readonly Reason[]): PolicyRemember | undefined {
    const { session, owner, user } = this.#whose(request.context);
    const scopes: RememberScope[] = [];
    if (session !== undefined) scopes.push('conversation');
    if (user !== undefined) scopes.push('user');
    if (this.mode === 'read-only' || scopes.length === 0) return undefined;
    const touches = asked.flatMap(({ touch }) => touch ?? []);
    const rules = rulesOfYes(request.tool.name, request.arguments, touches);
    const keep: PolicyRemember['keep'] = ({ scope, expires }) => {
      const whose = scope === 'user' ? user && { user } : session && { session, owner };
      const until = expires === undefined ? undefined : new Date(expires);
      if (whose) for (const rule of rules) this.remember(rule, { ...whose, until });
    };
    return { scopes, keep };
  }

  #decide(subject: Subject, tool: PolicyRequest['tool'], approved: readonly ReadyRule[]): Reason {
    const own = this.#byOwnRules(subject, tool, approved);
    const folder = mostSpecific(this.#folderRules, subject);
    // Rules of the folder only restrict. A standing approval has already answered a rule that asks.
    const isAnswered = own.by === 'standing yes' && folder?.decision === 'ask';
    const isStricter = folder !== undefined && RANK[folder.decision] > RANK[own.decision];
    const { decision, by, rule, because }: Cause =
      isStricter && !isAnswered ? { ...folder, by: 'folder rule' } : own;
    const { access } = subject;
    const what = access === undefined ? `calls ${subject.tool}` : describeAccess(access);
    const text = `${what}: ${because ?? rule?.reason ?? `${SOURCES[by]} ${VERBS[decision]}`}`;
    return { decision, by, text, ...(access && { touch: access }), ...(rule && { rule }) };
  }

  #byOwnRules(subject: Subject, tool: PolicyRequest['tool'], approved: readonly ReadyRule[]): Cause {
    const { access } = subject;
    const rule = mostSpecific(this.#rules, subject);
    if (rule?.decision === 'deny') return { ...rule, by: 'rule' };
    const mayBeDenied = rule?.weight === Number.POSITIVE_INFINITY && access?.action === 'run';
    const isCovered = !mayBeDenied && access?.action !== 'unknown' && alwaysAsks(access, true) === undefined;
    const isOfSameCall = ({ tool, arguments: args = {} }: PermissionRule): boolean =>
      tool !== undefined && Object.keys(subject.arguments).every((name) => Object.hasOwn(args, name));
    const approval = approved.find(
      ({ fits, rule }) => fits(subject) === 'yes' && (isCovered || isOfSameCall(rule)),
    );
    if (approval !== undefined && this.mode !== 'read-only')
      return { decision: 'allow', rule: approval.rule, by: 'standing yes' };
    const base = this.#byRuleOrMode(subject, tool, rule);
    // The sandbox prevents everything that would ask.
    if (this.mode === 'auto' && isSandboxed(access)) return base;
    // For an unknown access, its own reason is more useful than the mode.
    const isUnknown = access?.action === 'unknown' && base.decision === 'ask' && base.by === 'mode';
    if (base.decision !== 'allow' && !isUnknown) return base;
    const because = alwaysAsks(access, rule?.rule.path !== undefined);
    if (because !== undefined) return { decision: 'ask', by: 'always', because };
    const guarded = PROTECTED.find((one) => one.fits(subject) === 'yes');
    const isGuarded = guarded !== undefined && (rule === undefined || rule.weight < guarded.weight(access));
    return isGuarded ? { decision: 'ask', rule: guarded.rule, by: 'always' } : base;
  }

  #byRuleOrMode(subject: Subject, tool: PolicyRequest['tool'], rule: RuleDecision | undefined): Cause {
    const decision = this.#byMode(subject, tool);
    // A rule that only may match must not be more permissive than the mode.
    const isByMode = decision === 'deny' && !this.#rules.some((one) => one.fits(subject) === 'yes');
    if (rule !== undefined && !isByMode) return { ...rule, by: 'rule' };
    const needsSandbox = this.mode === 'auto' && decision === 'deny';
    const because = needsSandbox ? NEEDS_SANDBOX : `mode '${this.mode}' ${VERBS[decision]}`;
    return { decision, by: 'mode', because };
  }

  #byMode({ access, accessesNothing }: Subject, { annotations }: PolicyRequest['tool']): Permission {
    const isReading =
      access === undefined
        ? accessesNothing === true || annotations?.readOnly === true
        : access.action === 'read' || (access.action === 'run' && access.isReadOnly === true);
    if (isReading || (this.mode === 'auto' && isSandboxed(access))) return 'allow';
    if (access?.action === 'unknown' || this.mode === 'ask') return 'ask';
    if (this.mode === 'read-only' || access?.action === 'run') return 'deny';
    return access === undefined && annotations?.destructive === true ? 'ask' : 'allow';
  }
}

const NEEDS_SANDBOX =
  "mode 'auto' runs commands only in a sandbox: use sandboxShell() of toolwright/toolbox/sandbox, { sandbox: 'external' } in a container, or mode 'ask'";

const SOURCES: Readonly<Record<Reason['by'], string>> = {
  rule: 'a rule',
  'folder rule': 'a rule of the folder',
  'standing yes': 'a remembered approval',
  mode: 'the mode',
  always: 'a built-in rule',
};
const VERBS = { allow: 'allows it', ask: 'asks about it', deny: 'denies it' };

/** The cause of a decision. */
type Cause = Pick<Reason, 'decision' | 'by' | 'rule'> & { readonly because?: string };

/** The decision of the rules about one access. */
type RuleDecision = Omit<Cause, 'by'> & { readonly rule: PermissionRule; readonly weight: number };

function mostSpecific(rules: readonly ReadyRule[], subject: Subject): RuleDecision | undefined {
  let best: RuleDecision | undefined;
  for (const { rule, weight: weigh, fits } of rules) {
    const fit = fits(subject);
    if (fit === 'no' || (fit === 'maybe' && rule.decision === 'allow')) continue;
    const weight = weigh(subject.access);
    if (rule.decision === 'deny' && fit === 'yes') return { decision: 'deny', rule, weight };
    const because = 'it may access something that a rule denies';
    const one: RuleDecision =
      rule.decision === 'deny'
        ? { decision: 'ask', rule, weight: Number.POSITIVE_INFINITY, because }
        : { decision: rule.decision, rule, weight };
    const isMoreSpecific = one.weight > (best?.weight ?? -1);
    if (isMoreSpecific || (one.weight === best?.weight && one.decision === 'ask')) best = one;
  }
  return best;
}

/** Why an access asks in every mode, unless a rule that names it allows it. */
function alwaysAsks(access: ResourceAccess | undefined, isNamed: boolean): string | undefined {
  if (access?.action === 'unknown') return access.why;
  if (access?.action === 'read' || access?.action === 'write')
    return isOutside(access.path) && !isNamed ? 'it is outside of the folder' : undefined;
  if (access?.action !== 'run') return undefined;
  const outside = access.mentions?.find(isOutside);
  if (outside !== undefined) return `its argument '${outside}' is outside of the folder`;
  return access.words.includes(undefined) ? 'some of its arguments are unknown before it runs' : undefined;
}

function isSandboxed(access: ResourceAccess | undefined): boolean {
  return access !== undefined && 'isSandboxed' in access && access.isSandboxed === true;
}

/** Fails closed: if a tool cannot state what it would access, the access is unknown. */
async function accessOf(request: PolicyRequest): Promise<readonly ResourceAccess[] | 'as annotated'> {
  if (request.tool.touches === undefined) return 'as annotated';
  let problem = '';
  try {
    const stated: unknown = await request.tool.touches(request.arguments, request.context);
    if (stated === 'as annotated') return stated;
    if (Array.isArray(stated) && stated.every(isAccess)) return stated.flatMap(normalForms);
  } catch (error) {
    problem = `: ${errorMessage(error)}`;
  }
  return [{ action: 'unknown', why: `the tool could not report what it would access${problem}` }];
}

/** The only forms that rules and modes see: `reports/../.git/config` is `.git/config`. */
function normalForms(access: ResourceAccess): readonly ResourceAccess[] {
  if (access.action === 'open' || access.action === 'unknown') return [access];
  const { folder = workingFolder() } = access;
  if (access.action === 'run') {
    const mentions = access.mentions?.flatMap((path) => pathForms(path, access.folder));
    return [{ ...access, folder, ...(mentions && { mentions }) }];
  }
  const { absolute } = access;
  if (absolute === undefined)
    return pathForms(access.path, access.folder).map((path) => ({
      ...access,
      folder,
      path: withoutEnd(path),
    }));
  const path = withoutEnd(pathFrom(access.folder, access.path));
  const forms = new Set([absolute, realPathOf(absolute)].map((one) => pathFrom(undefined, one)));
  return [...forms].map((one) => ({ ...access, path, absolute: one }));
}

function withoutEnd(path: string): string {
  return path.replace(/(?<=.)\/$/, '');
}

/**
 * The forms of a path that a tool states. Without a folder, the tool may follow links: the other forms have links
 * resolved, and are relative to the working directory of the process.
 */
function pathForms(given: string, folder: string | undefined): readonly string[] {
  const path = pathFrom(folder, given);
  if (folder !== undefined) return [path];
  const here = workingFolder();
  const end = given.endsWith('/') ? '/' : '';
  // The system resolves `..` after the target of a link; some programs resolve it in the text.
  const real = [given, path].map((one) => realPathOf(isAbsolute(one) ? one : `${here}/${one}`) + end);
  return [...new Set([path, ...real.map((one) => pathFrom(here, one))])];
}

function workingFolder(): string {
  return pathFrom(undefined, realPathOf(process.cwd()));
}

function isAccess(value: unknown): value is ResourceAccess {
  if (!isRecord(value)) return false;
  const { action, path, words, mentions = [], absolute = '', folder = '', url, why } = value;
  const isText = (one: unknown): boolean => typeof one === 'string';
  if (action === 'read' || action === 'write') return [path, absolute, folder].every(isText);
  if (action === 'open') return isText(url);
  if (action === 'unknown') return isText(why);
  const areTexts = (list: unknown): boolean => Array.isArray(list) && list.every(isText);
  const known = Array.isArray(words) ? words.filter((word) => word !== undefined) : words;
  return action === 'run' && areTexts(known) && areTexts(mentions) && isText(folder);
}

/** A description for people, such as `writes 'src/a.ts'`, on one line and without invisible characters. */
function describeAccess(access: ResourceAccess): string {
  const quoted = (text: string): string => {
    const seen = visibleLine(text);
    return `'${seen.length > 200 ? `${seen.slice(0, 200)}…` : seen}'`;
  };
  if (access.action === 'run') return `runs ${quoted(access.words.map((word) => word ?? '…').join(' '))}`;
  if (access.action === 'open') return `opens ${quoted(access.url)}`;
  if (access.action === 'unknown') return 'has unknown effects';
  const verb = access.action === 'read' ? 'reads' : 'changes';
  return `${verb} ${quoted(access.absolute ?? access.path)}${access.isDeep ? ' and its contents' : ''}`;
}
