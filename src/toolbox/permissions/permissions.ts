import type { PolicyRemember, PolicyRequest, ToolPolicy } from '../../contract/call.js';
import type { RememberScope } from '../../contract/standing-approvals.js';
import type { ToolContext } from '../../contract/tool-context.js';
import type { Touch } from '../../contract/touch.js';
import { checkOptions, InvalidOptionsError } from '../../errors/author-fault.js';
import { errorMessage } from '../../kernel/error-message.js';
import {
  FILLED_TEXT,
  FUNCTION,
  oneOf,
  optionTable,
  protecting,
  RECORD,
  required,
} from '../../kernel/options.js';
import {
  type Judged,
  type Permission,
  type PermissionRule,
  type ReadyRule,
  RULES,
  readyRule,
  SAID_RULES,
} from './permission-rule.js';
import { type StandingYes, StandingYeses, type YesScope } from './standing-yes.js';
import { aboutOf, addressesIn, describeTouch, rulesOfYes, touchesOf } from './touches-of.js';

/**
 * What holds where no rule says something. `read-only`: what reads is allowed, the rest is denied. `ask`: what reads
 * is allowed, the rest asks. `auto`: all is allowed. In every mode asks what cannot be understood before it is done,
 * and what touches something outside of the folder.
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
  /** Where standing yeses are kept; default: in memory. It belongs to the user, not into the folder. */
  readonly file?: string;
  /** Whose calls these are, for yeses of a session; default: `context.conversationId`, or `context.chatId`. */
  readonly sessionOf?: (context: ToolContext) => string | undefined;
  /** Whose calls these are, for yeses of a user; default: nobody's. */
  readonly userOf?: (context: ToolContext) => string | undefined;
}

/** Why one thing that a call touches is allowed, asked about or denied. */
export interface Reason {
  readonly decision: Permission;
  /** Nothing where it is about the call as such. */
  readonly touch?: Touch;
  readonly by: 'rule' | 'folder rule' | 'standing yes' | 'mode' | 'always';
  readonly rule?: PermissionRule;
  /** For people: `writes 'src/a.ts': mode 'ask' asks about it`. */
  readonly text: string;
}

/** What becomes of a call, and why. */
export interface Verdict {
  readonly decision: Permission;
  /** One for each thing that it touches; those that decided first. */
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
    accepts: (value) => typeof value === 'object' && value !== null && 'name' in value,
    fix: "a definition: registry.get('place_order')",
  }),
  arguments: required(RECORD),
  context: required({
    accepts: (value) => typeof value === 'object' && value !== null,
    fix: "{ callId: 'c' }",
  }),
});

/** What programs run of themselves, or what says what is allowed: it asks, unless a rule names it. */
const PROTECTED = '.git/** .git .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs'.split(' ').map(
  (name): PermissionRule => ({
    ...({ decision: 'ask', action: 'write', path: `**/${name}` } as const),
    reason: 'programs that are named there run by themselves',
  }),
);

const RANK: Readonly<Record<Permission, number>> = { allow: 0, ask: 1, deny: 2 };

/**
 * One policy for all tools: rules, a mode, and yeses that were given before. Of the rules that fit, one that denies
 * wins; otherwise the one that says most; where two say as much, the one that asks. A call is allowed where everything
 * that it touches is.
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
  readonly #yeses: StandingYeses;
  readonly #sessionOf: (context: ToolContext) => string | undefined;
  readonly #userOf: (context: ToolContext) => string | undefined;

  /** @throws InvalidOptionsError (521) naming everything that is wrong, also with what the file says. */
  constructor(options: PermissionsOptions = {}) {
    checkOptions(options, PERMISSIONS_OPTIONS);
    const { mode = 'ask', rules = [], folderRules = [], file } = options;
    this.#mode = mode;
    this.#rules = rules.map(readyRule);
    this.#folderRules = folderRules.filter(({ decision }) => decision !== 'allow').map(readyRule);
    this.#yeses = readable(new StandingYeses(file));
    this.#sessionOf = options.sessionOf ?? (({ conversationId, chatId }) => conversationId ?? chatId);
    this.#userOf = options.userOf ?? (() => undefined);
  }

  /** For the loop, a registry, MCP: whatever takes a policy. */
  readonly policy: ToolPolicy = async (request) => {
    const { decision, reasons } = await this.explain(request);
    if (decision === 'allow') return true;
    const told = reasons.filter((reason) => reason.decision === decision).map(({ text }) => text);
    const reason = [...new Set(told)].join('; ');
    if (decision === 'deny') return { allow: false, reason };
    const asked = reasons.filter((one) => one.decision === 'ask');
    const remember = this.#rememberFor(request, asked);
    return { ask: true, reason, ...(remember === undefined ? {} : { remember }) };
  };

  /**
   * What becomes of a call, and why. Nothing is done.
   *
   * @throws InvalidOptionsError (521) where the tool is no definition, but its name.
   */
  async explain(request: PolicyRequest): Promise<Verdict> {
    checkOptions(request, REQUEST);
    const said = await touchesOf(request);
    const touches = said === 'as annotated' ? [] : said;
    const judged = touches.map((touch) => ({ ...aboutOf(request), touch }));
    const yeses = this.#rulesOfYeses(request.context);
    const reasons = judged.map((one) => this.#judge(one, request, yeses));
    const named = addressesIn(touches).map((touch) => ({ ...aboutOf(request), touch }));
    // A command that may open an address is allowed by rules about commands, never by one about the address.
    for (const reason of named.map((one) => this.#judge(one, request, yeses)))
      if (reason.decision !== 'allow' && (reason.rule?.host ?? reason.rule?.action) !== undefined)
        reasons.push(reason);
    if (touches.length === 0)
      reasons.push(
        this.#judge({ ...aboutOf(request), touchesNothing: said !== 'as annotated' }, request, yeses),
      );
    reasons.sort((one, other) => RANK[other.decision] - RANK[one.decision]);
    return { decision: reasons[0]?.decision ?? 'deny', reasons };
  }

  /** Whether a call is denied whatever it touches and whose it is: then it need not be offered. */
  denies(call: Pick<PolicyRequest, 'tool' | 'arguments'>): boolean {
    const touchesNothing = call.tool.touches !== undefined;
    return this.#judge({ ...aboutOf(call), touchesNothing }, call, []).decision === 'deny';
  }

  /**
   * Lets through from now on what fits a rule, for a session or a user. It is kept in the file, if there is one.
   *
   * @throws InvalidOptionsError (521) where the rule is not one that allows.
   */
  remember(rule: Omit<PermissionRule, 'decision'>, scope: YesScope & { readonly until?: Date }): StandingYes {
    const { until, ...whose } = scope;
    const allowing: PermissionRule = { ...rule, decision: 'allow' };
    checkOptions({ rules: [allowing] }, PERMISSIONS_OPTIONS);
    return this.#yeses.add({
      rule: allowing,
      scope: whose,
      given: new Date().toISOString(),
      ...(until === undefined ? {} : { until: until.toISOString() }),
    });
  }

  /** The yeses that hold now. */
  remembered(): readonly StandingYes[] {
    return this.#yeses.all();
  }

  /** Takes a yes back; tells whether it was there. */
  revoke(id: string): boolean {
    return this.#yeses.remove(id);
  }

  /** Lets a yes stand, for whom it can: whoever answers says whether it does. */
  #rememberFor(
    { tool, arguments: args, context }: PolicyRequest,
    asked: readonly Reason[],
  ): PolicyRemember | undefined {
    if (this.#mode === 'read-only') return undefined;
    const session = this.#sessionOf(context);
    const user = this.#userOf(context);
    const scopes: RememberScope[] = [];
    if (session !== undefined) scopes.push('conversation');
    if (user !== undefined) scopes.push('user');
    if (scopes.length === 0) return undefined;
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

  #rulesOfYeses(context: ToolContext): readonly ReadyRule[] {
    const session = this.#sessionOf(context);
    const user = this.#userOf(context);
    return this.#yeses
      .all()
      .filter(({ scope }) => ('session' in scope ? scope.session === session : scope.user === user))
      .map(({ rule }) => readyRule(rule));
  }

  #judge(judged: Judged, request: Pick<PolicyRequest, 'tool'>, yeses: readonly ReadyRule[]): Reason {
    const own = this.#judgeByOwn(judged, request, yeses);
    const folder = strongest(this.#folderRules, judged);
    if (folder === undefined || RANK[folder.decision] <= RANK[own.decision]) return own;
    // It may make it stricter; whatever it says, nothing becomes looser by it. Who has said yes knows of its question.
    return own.by === 'standing yes' && folder.decision === 'ask'
      ? own
      : reasonOf(judged, { ...folder, by: 'folder rule' });
  }

  #judgeByOwn(judged: Judged, request: Pick<PolicyRequest, 'tool'>, yeses: readonly ReadyRule[]): Reason {
    const rule = strongest(this.#rules, judged);
    if (rule?.decision === 'deny') return reasonOf(judged, { ...rule, by: 'rule' });
    const mayBeDenied = rule?.weight === Number.POSITIVE_INFINITY && judged.touch?.action === 'run';
    const yes = yeses.find(
      (one) =>
        one.fits(judged) === 'yes' &&
        mayCover(one.rule, judged) &&
        (!mayBeDenied || isSameCall(one.rule, judged)),
    );
    if (yes !== undefined && this.#mode !== 'read-only')
      return reasonOf(judged, { decision: 'allow', rule: yes.rule, by: 'standing yes' });
    const mode = this.#byMode(judged, request);
    // A rule that only may fit does not make it looser than the mode.
    const isByMode = mode === 'deny' && !this.#rules.some((one) => one.fits(judged) === 'yes');
    const base: Because =
      rule === undefined || isByMode
        ? { decision: mode, by: 'mode', because: `mode '${this.#mode}'` }
        : { ...rule, by: 'rule' };
    const always = alwaysAsks(judged, rule);
    // Of what is not understood, that says more than the mode.
    const isUnknown = judged.touch?.action === 'unknown' && base.by === 'mode';
    if (base.decision !== 'allow' && !isUnknown) return reasonOf(judged, base);
    if (always !== undefined) return reasonOf(judged, { decision: 'ask', by: 'always', because: always });
    const guarded = this.#protected.find((one) => one.fits(judged) === 'yes');
    if (guarded !== undefined && (rule === undefined || rule.weight < guarded.weight))
      return reasonOf(judged, { decision: 'ask', rule: guarded.rule, by: 'always' });
    return reasonOf(judged, base);
  }

  #byMode({ touch, touchesNothing }: Judged, { tool }: Pick<PolicyRequest, 'tool'>): Permission {
    const isReading =
      touch === undefined
        ? touchesNothing === true || tool.annotations?.readOnly === true
        : touch.action === 'read';
    if (isReading) return 'allow';
    if (touch?.action === 'unknown') return 'ask';
    if (this.#mode === 'read-only') return 'deny';
    if (this.#mode === 'ask') return 'ask';
    return touch === undefined && tool.annotations?.destructive === true ? 'ask' : 'allow';
  }
}

/** A file that cannot be understood would stop every call later, and tell nobody why. */
function readable(yeses: StandingYeses): StandingYeses {
  try {
    yeses.all();
  } catch (cause) {
    const fix = 'a file that is whole, or is not there yet';
    throw new InvalidOptionsError([
      { where: 'Permissions', option: 'file', problem: errorMessage(cause).replace(/\.$/, ''), fix },
    ]);
  }
  return yeses;
}

/** Why something asks whatever the mode, unless a rule that is about just this allows it. */
function alwaysAsks({ touch }: Judged, rule: Decided | undefined): string | undefined {
  if (touch === undefined) return undefined;
  if (touch.action === 'unknown') return touch.why;
  if (touch.action === 'read' || touch.action === 'write')
    return touch.path.startsWith('/') && rule?.rule?.path === undefined
      ? 'it is outside of the folder'
      : undefined;
  if (touch.action !== 'run') return undefined;
  const outside = (touch.mentions ?? []).find((path) => path.startsWith('/'));
  if (outside !== undefined) return `it is given '${outside}', which is outside of the folder`;
  const isKnown =
    !touch.words.includes(undefined) || (rule?.decision === 'allow' && rule.rule?.command !== undefined);
  return isKnown ? undefined : 'some of its words are not known before it runs';
}

/** What is not understood is covered by nothing but a yes to the very same call. */
function mayCover(rule: PermissionRule, judged: Judged): boolean {
  const { touch } = judged;
  if (touch?.action === 'unknown') return isSameCall(rule, judged);
  if (touch?.action !== 'run') return true;
  const isClear = !touch.words.includes(undefined) && !touch.mentions?.some((path) => path.startsWith('/'));
  return isClear || isSameCall(rule, judged);
}

function isSameCall(rule: PermissionRule, { arguments: args }: Judged): boolean {
  return (
    rule.tool !== undefined && Object.keys(args).every((name) => Object.hasOwn(rule.arguments ?? {}, name))
  );
}

/** What rules say of one thing. */
interface Decided {
  readonly decision: Permission;
  readonly rule?: PermissionRule;
  readonly weight: number;
  readonly because?: string;
}

function strongest(rules: readonly ReadyRule[], judged: Judged): Decided | undefined {
  let best: Decided | undefined;
  for (const { rule, weight, fits: fitsOf } of rules) {
    const fits = fitsOf(judged);
    if (fits === 'no' || (fits === 'maybe' && rule.decision === 'allow')) continue;
    // What may be denied is asked about.
    if (rule.decision === 'deny' && fits === 'yes') return { decision: 'deny', rule, weight };
    const isMaybe = rule.decision === 'deny';
    const one: Decided = {
      decision: rule.decision === 'deny' ? 'ask' : rule.decision,
      rule,
      weight: isMaybe ? Number.POSITIVE_INFINITY : weight,
      ...(isMaybe ? { because: 'it may be something that a rule denies' } : {}),
    };
    if (
      best === undefined ||
      one.weight > best.weight ||
      (one.weight === best.weight && one.decision === 'ask')
    )
      best = one;
  }
  return best;
}

interface Because {
  readonly decision: Permission;
  readonly by: Reason['by'];
  readonly rule?: PermissionRule;
  readonly because?: string;
}

const VERBS: Readonly<Record<Permission, string>> = {
  allow: 'allows it',
  ask: 'asks about it',
  deny: 'denies it',
};

function reasonOf({ touch, tool }: Judged, { decision, by, rule, because }: Because): Reason {
  const what = touch === undefined ? `calls ${tool}` : describeTouch(touch);
  const source =
    by === 'folder rule' ? 'a rule of the folder' : by === 'standing yes' ? 'a standing yes' : 'a rule';
  const why = because ?? rule?.reason ?? `${source} ${VERBS[decision]}`;
  const text = `${what}: ${by === 'mode' ? `${why} ${VERBS[decision]}` : why}`;
  return {
    decision,
    by,
    text,
    ...(touch === undefined ? {} : { touch }),
    ...(rule === undefined ? {} : { rule }),
  };
}
