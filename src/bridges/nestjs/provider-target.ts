import type { ArgumentMetadata } from '@nestjs/common';
import type { InstanceWrapper } from '@nestjs/core/injector/instance-wrapper.js';
import type { Module } from '@nestjs/core/injector/module.js';
import type { JsonObject } from '../../contract/json-schema.js';
import type { ArgumentBinding } from '../../discovery/argument-binding.js';
import type { CallTarget, HandlerValue } from './call-target.js';
import { declaredMethod } from './declared-method.js';
import type { DecoratedParameter } from './decorated-parameters.js';
import type { PlannedHandler } from './plan-provider.js';

/** The provider or controller that has a tool method. */
export interface ToolHost {
  readonly wrapper: InstanceWrapper<object>;
  readonly module: Module;
}

/** A tool method of a provider as the target of calls. */
export function providerTarget({ planned, method, parameters }: PlannedHandler, host: ToolHost): CallTarget {
  const { class: toolClass, key, bindings, call } = planned;
  // The prototype may name another class: where a class decorator has put a proxy around it, the class within,
  // which has not all of the metadata.
  const declared: object = Object.create(toolClass.prototype, { constructor: { value: toolClass } });
  const metadata = bindings.map((binding, index) =>
    metadataOf(binding, { type: designType(declared, key, index), decorated: parameters.get(index) }),
  );
  // Lays arguments out as the method takes them, and gives them back instead of running anything.
  const listing = { [key]: (...values: unknown[]) => values };
  return {
    declared,
    handler: declaredMethod(toolClass, method),
    parameterPipes: [...parameters.values()].flatMap(({ pipes }) => pipes),
    ...host,
    layOut(args, context, execution) {
      const values = call(listing, args as JsonObject, context) as readonly unknown[];
      return values.map((value, index): HandlerValue => {
        // The elements of a rest parameter stand at its place and after it.
        const place = Math.min(index, bindings.length - 1);
        const parameter = parameters.get(place);
        const isRead = parameter !== undefined && parameter.source !== 'model';
        return {
          value: isRead ? parameter.read(execution) : value,
          metadata: metadata[place],
          pipes: parameter?.pipes ?? [],
        };
      });
    },
    invoke(instance, values) {
      const real: unknown = Reflect.get(instance, key);
      if (typeof real !== 'function') {
        throw new TypeError(`The provider of ${toolClass.name} has no method '${String(key)}'.`);
      }
      return real.apply(instance, values);
    },
  };
}

/**
 * What pipes are told of a parameter. Its type is `custom`, as of parameters with decorators of their own:
 * `ValidationPipe` leaves those alone, and the arguments have been checked already.
 */
function metadataOf(
  binding: ArgumentBinding,
  { type, decorated }: { readonly type: unknown; readonly decorated: DecoratedParameter | undefined },
): ArgumentMetadata | undefined {
  if (decorated?.source === 'call') return metadata(type, decorated.data);
  switch (binding.from) {
    case 'context':
    case 'signal':
      return undefined;
    case 'arguments':
      return metadata(type, undefined);
    default:
      return metadata(type, binding.name);
  }
}

function metadata(metatype: unknown, data: unknown): ArgumentMetadata {
  return { type: 'custom', metatype: metatype as ArgumentMetadata['metatype'], data: data as string };
}

function designType(declared: object, key: string | symbol, index: number): unknown {
  return Reflect.getMetadata('design:paramtypes', declared, key)?.[index];
}
