import { type CallScope, SCOPE, SCOPE_RULES } from '../../contract/call-scope.js';
import { MODEL, PROVIDER } from '../../contract/llm-provider.js';
import { checkOptions } from '../../errors/invalid-options.js';
import { ANYTHING, instanceOf, type OptionRule } from '../../kernel/option-rules.js';
import { objectOf, optionTable } from '../../kernel/options.js';
import { LOOP_ALIASES, LOOP_RULES, type ToolLoopConfig } from '../../loop/loop-config.js';
import { ToolRegistry } from '../../registry/tool-registry.js';

/** The surroundings of a run in a Nest application, and its config. */
export interface RunOptions extends CallScope {
  /**
   * The request on whose behalf the run takes place: request-scoped providers are made for it, and guards find
   * it. Default: the HTTP request whose handler calls.
   */
  readonly request?: object;
  /** What the run has otherwise than the module's options say; `tools` is a view of the application's registry. */
  readonly config?: RunConfig;
}

/** The config of the loop, of which the module's options give the rest. */
export type RunConfig = Partial<Omit<ToolLoopConfig, 'tools'>> & { readonly tools?: ToolRegistry };

/** The same for a run that goes on. */
export interface AnswerOptions extends RunOptions {
  /** Who answered, for the record; default: the owner that the request stands for. */
  readonly answeredBy?: unknown;
}

const REQUEST: OptionRule = {
  accepts: (value) => typeof value === 'object' && value !== null,
  fix: 'the request: an object',
};

const TOOLS = instanceOf(ToolRegistry, 'a view of the application’s registry: registry.view({ … })');

const RULES = {
  ...SCOPE_RULES,
  request: REQUEST,
  // The module's options give the rest.
  config: objectOf<RunConfig>(
    { ...LOOP_RULES, provider: PROVIDER, model: MODEL, tools: TOOLS },
    { fix: "{ model: 'gpt-5', … }", meant: LOOP_ALIASES },
  ),
};

const MEANT = {
  ...SCOPE.meant,
  ...Object.fromEntries(Object.keys(LOOP_RULES).map((name) => [name, `config: { ${name}: … }`])),
};

export const RUN_OPTIONS = optionTable<RunOptions>('a run of ToolwrightService', RULES, MEANT);

const ANSWER_OPTIONS = optionTable<AnswerOptions>(RUN_OPTIONS.of, { ...RULES, answeredBy: ANYTHING }, MEANT);

/** Who answers, apart from what the run brings along. */
export function readAnswerOptions(
  options: AnswerOptions,
): Pick<AnswerOptions, 'answeredBy'> & { readonly asking: RunOptions } {
  checkOptions(options, ANSWER_OPTIONS);
  const { answeredBy, ...asking } = options;
  return { answeredBy, asking };
}
