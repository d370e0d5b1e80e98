import { RUN_STORE } from '../../core/contract/run-state.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import { boundMethodOf } from '../../tools/discovery/discover-tools.js';
import type { Inspector } from '../inspector/create-inspector.js';
import { type InspectorOptions, mayInspect, type ToolSurrounding } from '../inspector/options.js';
import { isHeldBack } from './application-fleet.js';
import type { ApplicationRuns } from './application-runs.js';
import type { Enhancers } from './enhancers.js';
import type { ToolwrightModuleOptions } from './options.js';
import { nestLogger } from './pipeline.js';

/** What an application's inspector is made from. */
interface InspectorParts {
  readonly options: ToolwrightModuleOptions;
  readonly registry: ToolRegistry;
  readonly runs: ApplicationRuns;
  readonly enhancers: Enhancers;
}

/** The inspector of an application, where its options ask for one. */
export class ApplicationInspector {
  readonly #parts: InspectorParts;
  #inspector: Inspector | undefined;

  constructor(parts: InspectorParts) {
    this.#parts = parts;
  }

  /** Serves it where there may be one: the same module runs in production. */
  async begin(): Promise<void> {
    const { inspector, logger = nestLogger() } = this.#parts.options;
    if (inspector === undefined || inspector === false || isHeldBack()) return;
    const { port, host, ...settings } = inspector === true ? {} : inspector;
    if (!mayInspect(settings)) {
      const place = process.env.NODE_ENV || 'not set';
      logger.warn(
        `There is no inspector, as NODE_ENV is ${place}: NODE_ENV=development, or inspector: { allowInProduction: true }`,
      );
      return;
    }
    const { createInspector } = await import('../inspector/create-inspector.js');
    this.#inspector = createInspector(this.#parts.registry, { ...this.inspection(), ...settings });
    const where = { ...(port === undefined ? {} : { port }), ...(host === undefined ? {} : { host }) };
    const { url } = await this.#inspector.listen(where);
    // Whoever reads the log may open it, so that it is there for a person at the terminal, and in no field of a log.
    process.stderr.write(`Toolwright inspector: ${url}\n`);
  }

  async end(): Promise<void> {
    await this.#inspector?.close();
    this.#inspector = undefined;
  }

  /** What an inspector is told of the application. */
  inspection(): InspectorOptions {
    const { options, runs } = this.#parts;
    const { provider, model, store, stateSecret, scopeOf, conversations } = options;
    const systemPrompt = conversations?.systemPrompt;
    return {
      ...(provider ? { provider } : {}),
      ...(model === undefined ? {} : { model }),
      ...(systemPrompt === undefined ? {} : { systemPrompt }),
      ...(isRunStore(store) ? { store } : {}),
      ...(stateSecret === undefined ? {} : { stateSecret }),
      surroundings: (tool) => this.#surroundings(tool),
      scope: ({ request, ...chosen }) => runs.scopeOf(request, chosen),
      ...(scopeOf ? { scopeOf: async (owner) => runs.scopeApart(await scopeOf(owner as never)) } : {}),
    };
  }

  #surroundings(tool: ToolDefinition): readonly ToolSurrounding[] {
    const bound = boundMethodOf(tool);
    const handler: unknown = bound && Reflect.get(bound.class.prototype, bound.key);
    const places =
      bound === undefined ? [] : [bound.class, ...(typeof handler === 'function' ? [handler] : [])];
    return this.#parts.enhancers.namesAround(places);
  }
}

/** The module takes stores of jobs alone, too. */
function isRunStore(store: unknown): store is NonNullable<InspectorOptions['store']> {
  return RUN_STORE.accepts(store);
}
