import type { PolicyRemember, PolicyRequest, ToolPolicy } from '../../contract/call.js';
import type { RememberScope } from '../../contract/standing-approvals.js';
import type { ToolContext } from '../../contract/tool-context.js';
import type { ResourceAccess } from '../../contract/touch.js';
import { checkOptions, InvalidOptionsError } from '../../errors/author-fault.js';
import { errorMessage } from '../../kernel/error-message.js';
import { isRecord } from '../../kernel/json.js';
import { FILLED_TEXT, FUNCTION, oneOf, optionTable, protecting } from '../../kernel/options.js';
import { visibleLine } from '../../kernel/visible-text.js';
import { PROTECTED_NAMES } from '../paths/folder-path.js';
import {
  EXPLICIT_RULES,
  type Permission,
  type PermissionRule,
  type ReadyRule,
  RULES,
  readyRule,
  rulesOfYes,
  type Subject,
} from './permission-rule.js';
import { type StandingApproval, StandingApprovals, type YesScope } from './standing-approval.js';

/**
 * What holds if no rule decides. `read-only`: what reads is allowed, the rest is denied. `ask`: what reads
 * is allowed, the rest asks. `auto`: all is allowed, commands only in a sandbox (`sandboxShell`, or a shell that states
 * `sandbox: 'external'`); without one they are denied. What is outside of the folder asks in every mode.
 */
export type PermissionMode = 'read-only' | 'ask' | 'auto';

/** Options of {@link Permissions}. */
export interface PermissionsOptions {
  /** Default: `ask`. */
  readonly mode?: PermissionMode;
  /** Rules of the user or the application. */
  readonly rules?: readonly PermissionRule[];
  /** Rules that the folder brings, whoever wrote them: they deny and ask, and never allow. */
  readonly folderRules?: readonly PermissionRule[];
  /** Where standing approvals are stored; default: in memory. It belongs to the user, not into the folder. */
  readonly file?: string;
  /** Whose calls these are, for approvals of a session; default: `context.conversationId`, or `context.chatId`. */
  readonly sessionOf?: (context: ToolContext) => string | undefined;
  /** Whose calls these are, for approvals of a user; default: nobody's. */
  readonly userOf?: (context: ToolContext) => string | undefined;
}

/** Why one resource that a call would access is allowed, asked about or denied. */
export interface Reason {
  readonly decision: Permission;
  /** `undefined` for the call as a whole. */
  readonly touch?: ResourceAccess;
  readonly by: 'rule' | 'folder rule' | 'standing yes' | 'mode' | 'always';
  readonly rule?: PermissionRule;
  /** For people: `writes 'src/a.ts': mode 'ask' asks about it`. */
  readonly text: string;
}

/** What happens to a call, and why. */
export interface Verdict {
  readonly decision: Permission;
  /** One for each resource that it would access; those that decided first. */
  readonly reasons: readonly Reason[];
}

/** What each option may be. */
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

/** Writing there asks, unless a rule names it. */
const PROTECTED = PROTECTED_NAMES.flatMap((name) => [`**/${name}`, `**/${name}/**`]).map((path) => {
  const reason = 'programs that are named there run by themselves';
  return readyRule({ decision: 'ask', action: 'write', path, reason });
});

const RANK = { allow: 0, ask: 1, deny: 2 };

/**
 * One policy for all tools: rules, a mode, and standing approvals. Of the rules that fit, one that denies wins;
 * otherwise the most specific one; of two that are as specific, the one that asks. A call is allowed if everything
 * that it would access is.
 *
 * @example
 * ```ts
 * const permissions = new Permissions({ mode: 'ask', rules: [{ decision: 'allow', path: 'src/**' }] });
 * const run = await runToolLoop({ provider, model: 'gpt-…', tools, policy: permissions.policy }, messages);
 * ```
 */
export class Permissions {
  /** The mode that holds if no rule decides. */
  readonly mode: PermissionMode;
  readonly #rules: readonly ReadyRule[];
  readonly #folderRules: readonly ReadyRule[];
  readonly #approvals: StandingApprovals;
  readonly #whose: (context: ToolContext) => { readonly session?: string; readonly user?: string };

  /** @throws InvalidOptionsError (521) naming everything that is wrong, also in the file. */
  constructor(options: PermissionsOptions = {}) {
    checkOptions(options, PERMISSIONS_OPTIONS);
    const { mode = 'ask', rules = [], folderRules = [], file, userOf } = options;
    const { sessionOf = ({ conversationId, chatId }) => conversationId ?? chatId } = options;
    this.mode = mode;
    this.#rules = rules.map(readyRule);
    this.#folderRules = folderRules.filter(({ decision }) => decision !== 'allow').map(readyRule);
    this.#approvals = new StandingApprovals(file);
    this.#whose = (context) => ({ session: sessionOf(context), user: userOf?.(context) });
    try {
      this.#approvals.all();
    } catch (cause) {
      const problem = errorMessage(cause).replace(/\.$/, '');
      const fix = 'a file that is whole, or is not there yet';
      throw new InvalidOptionsError([{ where: 'Permissions', option: 'file', problem, fix }]);
    }
  }

  /** For the loop, a registry, MCP: whatever takes a policy. */
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
   * What happens to a call, and why. Nothing is done.
   *
   * @throws InvalidOptionsError (521) if the tool is not a definition, but its name.
   */
  async explain(request: PolicyRequest): Promise<Verdict> {
    if (!isRecord(request.tool)) {
      const fix = "tool: registry.get('place_order')";
      const problem = `tool is ${visibleLine(String(request.tool))}, and not a definition`;
      throw new InvalidOptionsError([{ where: 'Permissions.explain', option: 'tool', problem, fix }]);
    }
    const stated = await accessOf(request);
    const accesses = stated === 'as annotated' ? [] : stated;
    const call = { tool: request.tool.name, arguments: request.arguments };
    const subjects: Subject[] = accesses.map((access) => ({ ...call, access }));
    if (accesses.length === 0) subjects.push({ ...call, accessesNothing: stated !== 'as annotated' });
    const { session, user } = this.#whose(request.context);
    const approved = this.#approvals
      .all()
      .filter(({ scope }) => ('session' in scope ? scope.session === session : scope.user === user))
      .map(({ rule }) => readyRule(rule));
    const reasons = subjects.map((subject) => this.#decide(subject, request.tool, approved));
    reasons.sort((one, other) => RANK[other.decision] - RANK[one.decision]);
    return { decision: reasons[0]?.decision ?? 'deny', reasons };
  }

  /** Whether a call is denied whatever it accesses and whose it is: then it need not be offered. */
  denies({ tool, arguments: args }: Pick<PolicyRequest, 'tool' | 'arguments'>): boolean {
    const subject = { tool: tool.name, arguments: args, accessesNothing: tool.touches !== undefined };
    return this.#decide(subject, tool, []).decision === 'deny';
  }

  /** Patterns of paths that a rule denies or asks about, whatever the tool, for a sandbox; `unwritable` may be read. */
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
   * Allows from now on what fits a rule, for a session or a user. It is stored in the file, if there is one.
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

  /** The standing approvals that hold now. */
  remembered(): readonly StandingApproval[] {
    return this.#approvals.all();
  }

  /** Revokes one; returns whether it was there. */
  revoke(id: string): boolean {
    return this.#approvals.remove(id);
  }

  /** Whoever answers decides whether the approval stands, and for whom. */
  #rememberFor(request: PolicyRequest, asked: readonly Reason[]): PolicyRemember | undefined {
    const { session, user } = this.#whose(request.context);
    const scopes: RememberScope[] = [];
    if (session !== undefined) scopes.push('conversation');
    if (user !== undefined) scopes.push('user');
    if (this.mode === 'read-only' || scopes.length === 0) return undefined;
    const touches = asked.flatMap(({ touch }) => touch ?? []);
    const rules = rulesOfYes(request.tool.name, request.arguments, touches);
    const keep: PolicyRemember['keep'] = ({ scope, expires }) => {
      const whose = scope === 'user' ? user && { user } : session && { session };
      const until = expires === undefined ? {} : { until: new Date(expires) };
      if (whose) for (const rule of rules) this.remember(rule, { ...whose, ...until });
    };
    return { scopes, keep };
  }

  #decide(subject: Subject, tool: PolicyRequest['tool'], approved: readonly ReadyRule[]): Reason {
    const own = this.#byOwnRules(subject, tool, approved);
    const folder = mostSpecific(this.#folderRules, subject);
    // Rules of the folder only restrict. A standing approval already answered what they ask.
    const isAnswered = own.by === 'standing yes' && folder?.decision === 'ask';
    const isStricter = folder !== undefined && RANK[folder.decision] > RANK[own.decision];
    const { decision, by, rule, because }: Cause =
      isStricter && !isAnswered ? { ...folder, by: 'folder rule' } : own;
    const { access } = subject;
    const what = access === undefined ? `calls ${subject.tool}` : describeAccess(access);
    const source = by === 'folder rule' ? 'a rule of the folder' : `a ${by}`;
    const text = `${what}: ${because ?? rule?.reason ?? `${source} ${VERBS[decision]}`}`;
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
    // A sandbox prevents whatever would ask.
    if (this.mode === 'auto' && isSandboxed(access)) return base;
    // The reason why an access is unknown says more than the mode.
    const isUnknown = access?.action === 'unknown' && base.decision === 'ask' && base.by === 'mode';
    if (base.decision !== 'allow' && !isUnknown) return base;
    const because = alwaysAsks(access, rule?.rule.path !== undefined);
    if (because !== undefined) return { decision: 'ask', by: 'always', because };
    const guarded = PROTECTED.find((one) => one.fits(subject) === 'yes');
    const isGuarded = guarded !== undefined && (rule === undefined || rule.weight < guarded.weight);
    return isGuarded ? { decision: 'ask', rule: guarded.rule, by: 'always' } : base;
  }

  #byRuleOrMode(subject: Subject, tool: PolicyRequest['tool'], rule: RuleDecision | undefined): Cause {
    const decision = this.#byMode(subject, tool);
    // A rule that only may fit is not laxer than the mode.
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

const VERBS = { allow: 'allows it', ask: 'asks about it', deny: 'denies it' };

/** Why a call is decided as it is. */
type Cause = Pick<Reason, 'decision' | 'by' | 'rule'> & { readonly because?: string };

/** What rules decide about one access. */
type RuleDecision = Omit<Cause, 'by'> & { readonly rule: PermissionRule; readonly weight: number };

function mostSpecific(rules: readonly ReadyRule[], subject: Subject): RuleDecision | undefined {
  let best: RuleDecision | undefined;
  for (const { rule, weight, fits } of rules) {
    const fit = fits(subject);
    if (fit === 'no' || (fit === 'maybe' && rule.decision === 'allow')) continue;
    if (rule.decision === 'deny' && fit === 'yes') return { decision: 'deny', rule, weight };
    const because = 'it may be something that a rule denies';
    const one: RuleDecision =
      rule.decision === 'deny'
        ? { decision: 'ask', rule, weight: Number.POSITIVE_INFINITY, because }
        : { decision: rule.decision, rule, weight };
    const isMoreSpecific = one.weight > (best?.weight ?? -1);
    if (isMoreSpecific || (one.weight === best?.weight && one.decision === 'ask')) best = one;
  }
  return best;
}

/** Why something asks whatever the mode, unless a rule that names it allows it. */
function alwaysAsks(access: ResourceAccess | undefined, isNamed: boolean): string | undefined {
  if (access?.action === 'unknown') return access.why;
  if (access?.action === 'read' || access?.action === 'write')
    return access.path.startsWith('/') && !isNamed ? 'it is outside of the folder' : undefined;
  if (access?.action !== 'run') return undefined;
  const outside = access.mentions?.find((path) => path.startsWith('/'));
  if (outside !== undefined) return `it is given '${outside}', which is outside of the folder`;
  return access.words.includes(undefined) ? 'some of its words are not known before it runs' : undefined;
}

function isSandboxed(access: ResourceAccess | undefined): boolean {
  return access !== undefined && 'isSandboxed' in access && access.isSandboxed === true;
}

/** Fails closed: if a tool cannot state what it would access, that is unknown. */
async function accessOf(request: PolicyRequest): Promise<readonly ResourceAccess[] | 'as annotated'> {
  if (request.tool.touches === undefined) return 'as annotated';
  let problem = '';
  try {
    const stated: unknown = await request.tool.touches(request.arguments, request.context);
    if (stated === 'as annotated') return stated;
    if (Array.isArray(stated) && stated.every(isAccess)) return stated;
  } catch (error) {
    problem = `: ${errorMessage(error)}`;
  }
  return [{ action: 'unknown', why: `the tool could not say what it would touch${problem}` }];
}

function isAccess(value: unknown): value is ResourceAccess {
  if (!isRecord(value)) return false;
  const { action, path, words, mentions = [], absolute = '', url, why } = value;
  const isText = (one: unknown): boolean => typeof one === 'string';
  if (action === 'read' || action === 'write') return isText(path) && isText(absolute);
  if (action === 'open') return isText(url);
  if (action === 'unknown') return isText(why);
  const areTexts = (list: unknown): boolean => Array.isArray(list) && list.every(isText);
  const known = Array.isArray(words) ? words.filter((word) => word !== undefined) : words;
  return action === 'run' && areTexts(known) && areTexts(mentions);
}

/** What a call would do, for people: `writes 'src/a.ts'`. Nothing in it is hidden, and it stays on its line. */
function describeAccess(access: ResourceAccess): string {
  const quoted = (text: string): string => {
    const seen = visibleLine(text);
    return `'${seen.length > 200 ? `${seen.slice(0, 200)}…` : seen}'`;
  };
  if (access.action === 'run') return `runs ${quoted(access.words.map((word) => word ?? '…').join(' '))}`;
  if (access.action === 'open') return `opens ${quoted(access.url)}`;
  if (access.action === 'unknown') return 'does what cannot be told before';
  const verb = access.action === 'read' ? 'reads' : 'changes';
  return `${verb} ${quoted(access.absolute ?? access.path)}${access.isDeep ? ' and what is in it' : ''}`;
}
