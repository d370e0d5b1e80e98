import { CONTROLLER_WATERMARK } from '@nestjs/common/constants.js';
import type { ClassType } from '../../contract/class-type.js';
import { type PlannedTool, planToolset } from '../../discovery/plan-toolset.js';
import type { AuthorFault } from '../../errors/author-fault.js';
import type { ParameterRecord } from '../../metadata/tool-method-record.js';
import { type InheritedMethod, toolMethods } from '../../metadata/tool-methods.js';
import { type DecoratedParameter, decoratedParameters } from './decorated-parameters.js';
import { withPipeDefault } from './pipe-default.js';

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
    methods.map(({ method, parameters }) => withDecorated(method, parameters)),
  );
  return {
    misfits,
    warnings: [
      ...warnings,
      ...methods.flatMap(({ method, parameters }) => strayPathParameters(toolset, method, parameters)),
    ],
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

const FILLED: readonly ParameterRecord[] = [{ role: 'context', isFilled: true }];

function withDecorated(
  { record, declaredIn }: InheritedMethod,
  decorated: ReadonlyMap<number, DecoratedParameter>,
): InheritedMethod {
  const parameters = new Map(record.parameters);
  const designTypes = Reflect.getMetadata('design:paramtypes', declaredIn.prototype, record.key);
  for (const [index, one] of decorated) {
    const records = parameters.get(index) ?? [];
    const said =
      one.source === 'model'
        ? withPipeDefault({ decorated: one, designType: designTypes?.[index], records })
        : FILLED;
    if (said.length > 0) parameters.set(index, said);
  }
  return { declaredIn, record: { ...record, parameters } };
}

/** `@Param('Customer id')` of Nest where that of this package was meant: its text would be lost. */
function strayPathParameters(
  toolset: ClassType,
  { record }: InheritedMethod,
  decorated: ReadonlyMap<number, DecoratedParameter>,
): readonly AuthorFault[] {
  if (record.tool === undefined || Reflect.hasMetadata(CONTROLLER_WATERMARK, toolset)) return [];
  return [...decorated].flatMap(([index, { data, isOfPath }]) =>
    isOfPath === true && !record.parameters.has(index)
      ? [
          {
            where: `${toolset.name}.${String(record.key)}, parameter #${index}`,
            problem: `its @Param(${data === undefined ? '' : JSON.stringify(data)}) comes from '@nestjs/common', which reads the path of a route, and ${toolset.name} is no controller; it describes nothing to the model`,
            fix: "import { Param } from 'toolwright'",
          },
        ]
      : [],
  );
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
