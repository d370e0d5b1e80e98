import { PARAMTYPES_METADATA, SELF_DECLARED_DEPS_METADATA } from '@nestjs/common/constants.js';
import type { InstanceWrapper } from '@nestjs/core/injector/instance-wrapper.js';
import type { ClassType } from '../../contract/class-type.js';
import type { AuthorFault } from '../../errors/author-fault.js';
import { lineage } from '../../metadata/class-record.js';

/**
 * A class that Nest makes and whose constructor wants what Nest does not know: without a class decorator the compiler
 * says nothing of its parameters, and they would be `undefined`.
 */
export function injectionFaults(toolClass: ClassType, wrapper: InstanceWrapper): readonly AuthorFault[] {
  if (wrapper.isNotMetatype || wrapper.metatype !== toolClass) return [];
  const wanted = parameterCount(toolClass);
  const types: readonly unknown[] = Reflect.getMetadata(PARAMTYPES_METADATA, toolClass) ?? [];
  const named: readonly object[] = Reflect.getMetadata(SELF_DECLARED_DEPS_METADATA, toolClass) ?? [];
  if (Math.max(types.length, named.length) >= wanted) return [];
  return [
    {
      where: toolClass.name,
      problem: `its constructor takes ${wanted === 1 ? 'a parameter' : `${wanted} parameters`}, and nothing tells Nest what to inject, so that it would be undefined`,
      causes: [
        'it has no class decorator, for which alone the compiler records the types of a constructor',
        'the build tool emits no decorator metadata (esbuild, tsx)',
      ],
      fix: '@Injectable() before the class; or @Inject(OrderService) before each parameter; a parameter that may be left out needs a default',
    },
  ];
}

/** Parameters without defaults of the constructor that is run: a class without one of its own runs its base's. */
function parameterCount(toolClass: ClassType): number {
  const own = [...lineage(toolClass)].reverse().find(declaresConstructor);
  return own?.length ?? 0;
}

function declaresConstructor(one: ClassType): boolean {
  return one.length > 0 || /\bconstructor\s*\(/.test(Function.prototype.toString.call(one));
}
