import type { ClassType } from '../../contract/class-type.js';
import { type PlannedTool, planToolset } from '../../discovery/plan-toolset.js';
import type { AuthorFault } from '../../errors/author-fault.js';
import type { ParameterRecord } from '../../metadata/tool-method-record.js';
import { type InheritedMethod, toolMethods } from '../../metadata/tool-methods.js';
import { type DecoratedParameter, decoratedParameters } from './decorated-parameters.js';

/** A tool of a provider, and what Nest's decorators say of its method's parameters. */
export interface PlannedHandler {
  readonly planned: PlannedTool;
  readonly method: InheritedMethod;
  readonly parameters: ReadonlyMap<number, DecoratedParameter>;
}

/** The tools of a provider's class, and everything that is wrong with its declarations. */
export interface ProviderPlan {
  readonly handlers: readonly PlannedHandler[];
  readonly faults: readonly AuthorFault[];
  /** Generated descriptions that no longer fit the class. */
  readonly misfits: readonly AuthorFault[];
  /** What works and is probably not meant. */
  readonly warnings: readonly AuthorFault[];
}

/**
 * Understands the tools of a class as the plain discovery does, except that parameters which Nest's decorators
 * fill (`createParamDecorator`, `@Req()`) are not the model's: they are no part of the schema.
 */
export function planProvider(toolset: ClassType): ProviderPlan {
  const methods = toolMethods(toolset).map((method) => ({
    method,
    parameters: decoratedParameters(method.declaredIn, method.record.key),
  }));
  const { tools, faults, misfits, warnings } = planToolset(
    toolset,
    methods.map(({ method, parameters }) => withInjected(method, parameters)),
  );
  return {
    misfits,
    warnings,
    handlers: tools.flatMap((planned) => {
      const of = methods.find(({ method }) => method.record.key === planned.key);
      return of ? [{ planned, ...of }] : [];
    }),
    faults: [
      ...faults,
      ...methods.flatMap(({ method, parameters }) =>
        method.record.tool === undefined
          ? []
          : httpOnly(`${toolset.name}.${String(method.record.key)}`, parameters),
      ),
    ],
  };
}

const INJECTED: readonly ParameterRecord[] = [{ role: 'context' }];

function withInjected(
  { record, declaredIn }: InheritedMethod,
  decorated: ReadonlyMap<number, DecoratedParameter>,
): InheritedMethod {
  const parameters = new Map(record.parameters);
  for (const [index, { source }] of decorated) if (source !== 'model') parameters.set(index, INJECTED);
  return { declaredIn, record: { ...record, parameters } };
}

function httpOnly(where: string, decorated: ReadonlyMap<number, DecoratedParameter>): readonly AuthorFault[] {
  return [...decorated].flatMap(([index, { source }]) =>
    source === 'http'
      ? [
          {
            where,
            parameter: `#${index}`,
            problem: 'its decorator reads what a tool call does not have',
            fix: '@Req(), or a decorator of your own made with createParamDecorator',
          },
        ]
      : [],
  );
}
