import { canonicalJson } from '../../checking/canonical-json.js';
import type { CallScope } from '../../contract/call-scope.js';
import { InvalidOptionsError } from '../../errors/invalid-options.js';
import { ToolwrightError } from '../../errors/toolwright-error.js';
import { ownerOf } from '../../loop/run-owner.js';
import type { OwnedRun, OwnerScope, ToolwrightModuleOptions } from './module-options.js';

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
