import type { PolicyRemember, PolicyRequest, ToolPolicy } from '../../contract/call.js';
import type { RememberScope } from '../../contract/standing-approvals.js';
import type { ToolContext } from '../../contract/tool-context.js';
import type { ResourceAccess } from '../../contract/touch.js';
import { checkOptions, InvalidOptionsError } from '../../errors/author-fault.js';
import { errorMessage } from '../../kernel/error-message.js';
import { isRecord } from '../../kernel/json.js';
import {
  FILLED_TEXT,
  FUNCTION,
  oneOf,
  optionTable,
  protecting,
  RECORD,
  required,
} from '../../kernel/options.js';
import { PROTECTED_NAMES } from '../paths/folder-path.js';
import { accessOf, describeAccess, rulesOfYes } from './access-of.js';
import {
  type Permission,
  type PermissionRule,
  type ReadyRule,
  RULES,
  readyRule,
  SAID_RULES,
  type Subject,
} from './permission-rule.js';
import { type StandingApproval, StandingApprovals, type YesScope } from './standing-approval.js';

/**
 * What holds where no rule says something. `read-only`: what reads is allowed, the rest is denied. `ask`: what reads
 * is allowed, the rest asks. `auto`: all is allowed, commands only in a sandbox (`sandboxShell`, or a shell that states
 * `sandbox: 'external'`); without one they are denied. What is outside of the folder asks in every mode.
 */
export type PermissionMode = 'read-only' | 'ask' | 'auto';

/** What {@link Permissions} are made from. */
export interface PermissionsOptions {
  /** Default: `ask`. */
  readonly mode?: PermissionMode;
  /** Those of the user or the application. */
  readonly rules?: readonly PermissionRule[];
  /** Those that the folder itself brings, of which nobody knows who wrote them: they deny and ask, and never allow. */
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
  /** Nothing where it is about the call as such. */
  readonly touch?: ResourceAccess;
  readonly by: 'rule' | 'folder rule' | 'standing yes' | 'mode' | 'always';
  readonly rule?: PermissionRule;
  /** For people: `writes 'src/a.ts': mode 'ask' asks about it`. */
  readonly text: string;
}

/** What becomes of a call, and why. */
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
    rules: protecting(SAID_RULES),
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

const REQUEST = optionTable<PolicyRequest>('Permissions.explain', {
  tool: required({
    accepts: (value) => isRecord(value) && 'name' in value,
    fix: "a definition: registry.get('place_order')",
  }),
  arguments: required(RECORD),
  context: required({ ...RECORD, fix: "{ callId: 'c' }" }),
});

/** It asks, unless a rule names it. */
const PROTECTED = PROTECTED_NAMES.flatMap((name): PermissionRule[] =>
  [`**/${name}`, `**/${name}/**`].map((path) => ({
    ...({ decision: 'ask', action: 'write', path } as const),
    reason: 'programs that are named there run by themselves',
  })),
);

const RANK: Readonly<Record<Permission, number>> = { allow: 0, ask: 1, deny: 2 };

/**
 * One policy for all tools: rules, a mode, and standing approvals. Of the rules that fit, one that denies wins;
 * otherwise the one that says most; where two say as much, the one that asks. A call is allowed where everything that
 * it would access is.
 *
 * @example
 * ```ts
 * const permissions = new Permissions({ mode: 'ask', rules: [{ decision: 'allow', path: 'src/**' }] });
 * const run = await runToolLoop({ provider, model: 'gpt-…', tools, policy: permissions.policy }, messages);
 * ```
 */
export class Permissions {
  readonly #mode: PermissionMode;
  readonly #rules: readonly ReadyRule[];
  readonly #folderRules: readonly ReadyRule[];
  readonly #protected = PROTECTED.map(readyRule);
  readonly #approvals: StandingApprovals;
  readonly #sessionOf: (context: ToolContext) => string | undefined;
  readonly #userOf: (context: ToolContext) => string | undefined;

  /** @throws InvalidOptionsError (521) naming everything that is wrong, also with what the file says. */
  constructor(options: PermissionsOptions = {}) {
    checkOptions(options, PERMISSIONS_OPTIONS);
    const { mode = 'ask', rules = [], folderRules = [], file } = options;
    this.#mode = mode;
    this.#rules = rules.map(readyRule);
    this.#folderRules = folderRules.filter(({ decision }) => decision !== 'allow').map(readyRule);
    this.#approvals = readable(new StandingApprovals(file));
    this.#sessionOf = options.sessionOf ?? (({ conversationId, chatId }) => conversationId ?? chatId);
    this.#userOf = options.userOf ?? (() => undefined);
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
   * What becomes of a call, and why. Nothing is done.
   *
   * @throws InvalidOptionsError (521) where the tool is no definition, but its name.
   */
  async explain(request: PolicyRequest): Promise<Verdict> {
    checkOptions(request, REQUEST);
    const stated = await accessOf(request);
    const accesses = stated === 'as annotated' ? [] : stated;
    const call = { tool: request.tool.name, arguments: request.arguments };
    const subjects: Subject[] = accesses.map((access) => ({ ...call, access }));
    if (accesses.length === 0) subjects.push({ ...call, accessesNothing: stated !== 'as annotated' });
    const approved = this.#approvedRules(request.context);
    const reasons = subjects.map((subject) => this.#decide(subject, request, approved));
    reasons.sort((one, other) => RANK[other.decision] - RANK[one.decision]);
    return { decision: reasons[0]?.decision ?? 'deny', reasons };
  }

  /** Whether a call is denied whatever it touches and whose it is: then it need not be offered. */
  denies({ tool, arguments: args }: Pick<PolicyRequest, 'tool' | 'arguments'>): boolean {
    const subject = { tool: tool.name, arguments: args, accessesNothing: tool.touches !== undefined };
    return this.#decide(subject, { tool }, []).decision === 'deny';
  }

  /** The mode that holds where no rule says something. */
  get mode(): PermissionMode {
    return this.#mode;
  }

  /**
   * Patterns of paths that a rule denies or asks about, whatever the tool: a sandbox keeps them away from commands,
   * which run without a question. `unwritable` may be read.
   */
  closedPaths(): { readonly unreadable: readonly string[]; readonly unwritable: readonly string[] } {
    const closed = [...this.#rules, ...this.#folderRules]
      .map(({ rule }) => rule)
      .filter(({ decision, tool = '*', arguments: args }) => decision !== 'allow' && tool === '*' && !args);
    const pathsOf = (isWrite: boolean): readonly string[] =>
      closed.flatMap(({ action, path = [] }) => ((action === 'write') === isWrite ? path : []));
    return { unreadable: pathsOf(false), unwritable: pathsOf(true) };
  }

  /**
   * Lets through from now on what fits a rule, for a session or a user. It is kept in the file, if there is one.
   *
   * @throws InvalidOptionsError (521) where the rule is not one that allows.
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
  #rememberFor(
    { tool, arguments: args, context }: PolicyRequest,
    asked: readonly Reason[],
  ): PolicyRemember | undefined {
    const { session, user } = this.#whose(context);
    const scopes: RememberScope[] = [
      ...(session === undefined ? [] : ['conversation' as const]),
      ...(user === undefined ? [] : ['user' as const]),
    ];
    if (this.#mode === 'read-only' || scopes.length === 0) return undefined;
    return {
      scopes,
      keep: ({ scope, expires }) => {
        const whose = scope === 'user' ? user && { user } : session && { session };
        if (!whose) return;
        const touches = asked.flatMap(({ touch }) => touch ?? []);
        const until = expires === undefined ? {} : { until: new Date(expires) };
        for (const rule of rulesOfYes(tool.name, args, touches)) this.remember(rule, { ...whose, ...until });
      },
    };
  }

  #whose(context: ToolContext): { readonly session: string | undefined; readonly user: string | undefined } {
    return { session: this.#sessionOf(context), user: this.#userOf(context) };
  }

  #approvedRules(context: ToolContext): readonly ReadyRule[] {
    const { session, user } = this.#whose(context);
    return this.#approvals
      .all()
      .filter(({ scope }) => ('session' in scope ? scope.session === session : scope.user === user))
      .map(({ rule }) => readyRule(rule));
  }

  #decide(subject: Subject, { tool }: Pick<PolicyRequest, 'tool'>, approved: readonly ReadyRule[]): Reason {
    const own = this.#decideByOwn(subject, tool, approved);
    const folder = strongest(this.#folderRules, subject);
    if (folder === undefined || RANK[folder.decision] <= RANK[own.decision]) return own;
    // It may make it stricter, never looser. An approval was given in view of the question of the folder.
    return own.by === 'standing yes' && folder.decision === 'ask'
      ? own
      : reasonOf(subject, { ...folder, by: 'folder rule' });
  }

  #decideByOwn(subject: Subject, tool: PolicyRequest['tool'], approved: readonly ReadyRule[]): Reason {
    const { access } = subject;
    const rule = strongest(this.#rules, subject);
    if (rule?.decision === 'deny') return reasonOf(subject, { ...rule, by: 'rule' });
    const mayBeDenied = rule?.weight === Number.POSITIVE_INFINITY && access?.action === 'run';
    const isCovered = !mayBeDenied && access?.action !== 'unknown' && alwaysAsks(access, true) === undefined;
    const approval = approved.find(
      (one) => one.fits(subject) === 'yes' && (isCovered || isSameCall(one.rule, subject)),
    );
    if (approval !== undefined && this.#mode !== 'read-only')
      return reasonOf(subject, { decision: 'allow', rule: approval.rule, by: 'standing yes' });
    const base = this.#byRuleOrMode(subject, tool, rule);
    // Of what is not understood, the reason says more than the mode.
    const isUnknown = access?.action === 'unknown' && base.decision === 'ask' && base.by === 'mode';
    // A sandbox keeps a command away from whatever would ask.
    const isKeptIn = this.#mode === 'auto' && isSandboxed(access);
    if (isKeptIn || (base.decision !== 'allow' && !isUnknown)) return reasonOf(subject, base);
    const because = alwaysAsks(access, rule?.rule.path !== undefined);
    if (because !== undefined) return reasonOf(subject, { decision: 'ask', by: 'always', because });
    const guarded = this.#protected.find((one) => one.fits(subject) === 'yes');
    return guarded !== undefined && (rule === undefined || rule.weight < guarded.weight)
      ? reasonOf(subject, { decision: 'ask', rule: guarded.rule, by: 'always' })
      : reasonOf(subject, base);
  }

  #byRuleOrMode(subject: Subject, tool: PolicyRequest['tool'], rule: Decided | undefined): Because {
    const decision = this.#byMode(subject, tool);
    // A rule that only may fit does not make it looser than the mode.
    const isByMode = decision === 'deny' && !this.#rules.some((one) => one.fits(subject) === 'yes');
    if (rule !== undefined && !isByMode) return { ...rule, by: 'rule' };
    const needsSandbox = this.#mode === 'auto' && decision === 'deny';
    const because = needsSandbox ? NEEDS_SANDBOX : `mode '${this.#mode}' ${VERBS[decision]}`;
    return { decision, by: 'mode', because };
  }

  #byMode({ access, accessesNothing }: Subject, { annotations }: PolicyRequest['tool']): Permission {
    const isReading =
      access === undefined
        ? accessesNothing === true || annotations?.readOnly === true
        : access.action === 'read' || (access.action === 'run' && access.isReadOnly === true);
    if (isReading) return 'allow';
    if (this.#mode === 'auto' && isSandboxed(access)) return 'allow';
    if (access?.action === 'unknown' || this.#mode === 'ask') return 'ask';
    if (this.#mode === 'read-only' || access?.action === 'run') return 'deny';
    return access === undefined && annotations?.destructive === true ? 'ask' : 'allow';
  }
}

function isSandboxed(access: ResourceAccess | undefined): boolean {
  return access !== undefined && 'isSandboxed' in access && access.isSandboxed === true;
}

const NEEDS_SANDBOX =
  "mode 'auto' runs commands only in a sandbox: use sandboxShell() of toolwright/toolbox/sandbox, { sandbox: 'external' } in a container, or mode 'ask'";

/** A file that cannot be understood would stop every call later. */
function readable(approvals: StandingApprovals): StandingApprovals {
  try {
    approvals.all();
    return approvals;
  } catch (cause) {
    const problem = errorMessage(cause).replace(/\.$/, '');
    const fix = 'a file that is whole, or is not there yet';
    throw new InvalidOptionsError([{ where: 'Permissions', option: 'file', problem, fix }]);
  }
}

/** Why something asks whatever the mode, unless a rule that names it allows it. */
function alwaysAsks(access: ResourceAccess | undefined, isNamed: boolean): string | undefined {
  if (access?.action === 'unknown') return access.why;
  if (access?.action === 'read' || access?.action === 'write')
    return access.path.startsWith('/') && !isNamed ? 'it is outside of the folder' : undefined;
  if (access?.action !== 'run') return undefined;
  const outside = (access.mentions ?? []).find((path) => path.startsWith('/'));
  if (outside !== undefined) return `it is given '${outside}', which is outside of the folder`;
  return access.words.includes(undefined) ? 'some of its words are not known before it runs' : undefined;
}

function isSameCall(rule: PermissionRule, { arguments: args }: Subject): boolean {
  return (
    rule.tool !== undefined && Object.keys(args).every((name) => Object.hasOwn(rule.arguments ?? {}, name))
  );
}

interface Because {
  readonly decision: Permission;
  readonly by: Reason['by'];
  readonly rule?: PermissionRule;
  readonly because?: string;
}

/** What rules decide about one thing. */
type Decided = Omit<Because, 'by'> & { readonly rule: PermissionRule; readonly weight: number };

function strongest(rules: readonly ReadyRule[], subject: Subject): Decided | undefined {
  let best: Decided | undefined;
  for (const { rule, weight, fits: fitsOf } of rules) {
    const fits = fitsOf(subject);
    if (fits === 'no' || (fits === 'maybe' && rule.decision === 'allow')) continue;
    if (rule.decision === 'deny' && fits === 'yes') return { decision: 'deny', rule, weight };
    const one: Decided =
      rule.decision === 'deny'
        ? { decision: 'ask', rule, weight: Number.POSITIVE_INFINITY, because: MAY_BE_DENIED }
        : { decision: rule.decision, rule, weight };
    const isStronger = one.weight > (best?.weight ?? -1);
    if (isStronger || (one.weight === best?.weight && one.decision === 'ask')) best = one;
  }
  return best;
}

const MAY_BE_DENIED = 'it may be something that a rule denies';

const VERBS: Readonly<Record<Permission, string>> = {
  allow: 'allows it',
  ask: 'asks about it',
  deny: 'denies it',
};

const SOURCES: Readonly<Record<Reason['by'], string>> = {
  rule: 'a rule',
  'folder rule': 'a rule of the folder',
  'standing yes': 'a standing yes',
  mode: 'the mode',
  always: 'a rule',
};

function reasonOf({ access, tool }: Subject, { decision, by, rule, because }: Because): Reason {
  const what = access === undefined ? `calls ${tool}` : describeAccess(access);
  const text = `${what}: ${because ?? rule?.reason ?? `${SOURCES[by]} ${VERBS[decision]}`}`;
  return { decision, by, text, ...(access && { touch: access }), ...(rule && { rule }) };
}
