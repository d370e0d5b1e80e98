import { approverOf } from '../call/approver.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import type { PendingCall } from '../contract/call.js';
import { ToolwrightError } from '../errors/toolwright-error.js';

/** Who answers, where nobody says who it is. */
const SOMEBODY = { inspector: true };

/** Whoever answers at the page. */
export class AnsweringPerson {
  readonly #registry: ToolRegistry;
  readonly #configured: unknown;

  constructor(registry: ToolRegistry, configured: unknown) {
    this.#registry = registry;
    this.#configured = configured;
  }

  /** As the calls record it. */
  get name(): unknown {
    return this.#configured ?? SOMEBODY;
  }

  /**
   * Somebody of whom nothing is known may be the owner of the run: they approve no call whose tool says who may.
   *
   * @throws ToolwrightError `RunNotAllowed` (523).
   */
  check({ tool, approver }: Pick<PendingCall, 'tool' | 'approver'>): void {
    const now = approverOf(this.#registry.offered(tool)?.approval);
    if (this.#configured !== undefined || (approver ?? now) === undefined) return;
    const message = `The call of '${tool}' can be approved here only where the inspector knows who answers: answeredBy: { user: 'u1' } in its options, or --by. Nothing has run.`;
    throw new ToolwrightError('RunNotAllowed', message);
  }
}
