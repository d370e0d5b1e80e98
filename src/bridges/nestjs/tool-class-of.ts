import type { InstanceWrapper } from '@nestjs/core/injector/instance-wrapper.js';
import type { ClassType } from '../../contract/class-type.js';
import { toolMethods } from '../../metadata/tool-methods.js';

/**
 * The class that declares the tools of a provider: its own class, the class of what a factory made (seen
 * through proxies), or the class that it is provided as, where a stand-in of another shape serves it.
 */
export function toolClassOf(wrapper: InstanceWrapper): ClassType | undefined {
  return [ownClass(wrapper), wrapper.token].find(declaresTools);
}

function ownClass(wrapper: InstanceWrapper): unknown {
  if (!wrapper.isNotMetatype) return wrapper.metatype;
  const { instance, token }: { readonly instance: unknown; readonly token: unknown } = wrapper;
  if (typeof instance !== 'object' || instance === null) return undefined;
  const prototype: unknown = Object.getPrototypeOf(instance);
  // The prototype names the class within, where a class decorator has put a proxy around it.
  if (typeof token === 'function' && token.prototype === prototype) return token;
  return typeof prototype === 'object' && prototype !== null ? prototype.constructor : undefined;
}

function declaresTools(candidate: unknown): candidate is ClassType {
  return typeof candidate === 'function' && toolMethods(candidate as ClassType).length > 0;
}
