import { Logger } from '@nestjs/common';
import { loggedFields } from '../call/log.js';
import { createRedaction, type Redaction } from '../call/redact.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import type { CallScope } from '../contract/call.js';
import type { ToolDefinition } from '../contract/tool.js';
import { InvalidOptionsError } from '../errors/author-fault.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { canonicalJson } from '../kernel/json.js';

import { ownerOf } from '../loop/run-owner.js';
import { LogEntry } from './error-texts.js';
import type { OwnedRun, OwnerScope, ToolwrightModuleOptions } from './options.js';

/** What the options say of owners. */
type OwnerOptions = Pick<ToolwrightModuleOptions, 'owner' | 'mayAnswer' | 'scopeOf'>;

/** Somebody who answers a run. */
interface Answerer {
  readonly request: object | undefined;
  readonly owner: unknown;
}

/** On whose behalf runs take place, and who may answer for whom. */
export class RunOwners {
  readonly #options: OwnerOptions;

  constructor(options: OwnerOptions) {
    this.#options = options;
  }

  /** Whether the application has said who owns what. */
  get areKnown(): boolean {
    return this.#options.owner !== undefined;
  }

  /** The owner that a request stands for: what its scope names, or what `owner` says of it. */
  of(request: object | undefined, scope: Pick<CallScope, 'owner'>): unknown {
    if (scope.owner !== undefined) return ownerOf(scope);
    const { owner: ownerOfRequest } = this.#options;
    if (ownerOfRequest === undefined || request === undefined) return undefined;
    const owner = ownerOfRequest(request as never);
    // As JSON, every promise would be the same owner.
    if (owner instanceof Promise) {
      owner.catch(() => {});
      throw new InvalidOptionsError([PROMISED]);
    }
    return ownerOf({ owner });
  }

  /** Whether a run is the answerer's own. A missing owner is the same as no other one. */
  isOwn(run: OwnedRun, { owner }: Answerer): boolean {
    if (run.owner === undefined || owner === undefined) return run.owner === owner;
    return canonicalJson(run.owner) === canonicalJson(owner);
  }

  /**
   * The scope of the owner of a run which somebody else answers.
   *
   * @throws ToolwrightError `RunNotAllowed` (523) unless `mayAnswer` says exactly `true`.
   */
  async scopeFor(run: OwnedRun, { request }: Answerer): Promise<OwnerScope> {
    const { mayAnswer, scopeOf } = this.#options;
    if (mayAnswer === undefined || scopeOf === undefined) throw notAllowed();
    let isAllowed: unknown;
    try {
      isAllowed = await mayAnswer(request as never, run);
    } catch (cause) {
      throw notAllowed(cause);
    }
    if (isAllowed !== true) throw notAllowed();
    return scopeOf(run.owner as never);
  }
}

function notAllowed(cause?: unknown): ToolwrightError {
  const message =
    'The run was not resumed. It has another owner, for whom this request may not answer. Nothing has run.';
  return new ToolwrightError('RunNotAllowed', message, cause === undefined ? undefined : { cause });
}

const PROMISED = {
  where: 'ToolwrightModule',
  option: 'owner',
  problem: 'owner returns a promise',
  fix: 'owner: (request) => ({ user: request.user.id }), from what a guard has put there',
};

/** Which tools a request sees, by the `visible` of the options: those of which it says `true`, and nothing else. */
export class ToolVisibility {
  readonly #visible: ToolwrightModuleOptions['visible'];
  readonly #redaction: Redaction;
  readonly #logger = new Logger('Toolwright');

  constructor({ visible, redact }: Pick<ToolwrightModuleOptions, 'visible' | 'redact'>) {
    this.#visible = visible;
    this.#redaction = createRedaction(redact);
  }

  /** Whether anything may be hidden at all. */
  get isLimited(): boolean {
    return this.#visible !== undefined;
  }

  async shows(request: object | undefined, tool: ToolDefinition): Promise<boolean> {
    if (this.#visible === undefined) return true;
    try {
      return (await this.#visible(request as never, tool)) === true;
    } catch (error) {
      const fields = loggedFields({ error }, this.#redaction);
      this.#logger.error(new LogEntry(`The tool '${tool.name}' is hidden: visible threw`, fields));
      return false;
    }
  }

  /** The names of the tools that a request does not see. */
  async hidden(request: object | undefined, tools: ToolRegistry): Promise<readonly string[]> {
    if (this.#visible === undefined) return [];
    const all = tools.tools();
    const shown = await Promise.all(all.map((tool) => this.shows(request, tool)));
    return all.filter((_tool, index) => !shown[index]).map(({ name }) => name);
  }
}
