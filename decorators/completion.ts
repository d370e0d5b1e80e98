import { recordServed, refuseStandardDecorators } from '../src/core/metadata/class-record.js';

/**
 * Turns a method into the completion of an argument of a prompt or of a variable of a resource. `of` is the name of
 * the prompt as clients see it, or the URI template of the resource. The parameter `value` receives what the user has
 * typed so far. Other parameters receive the arguments of the same name that the client has sent. The method returns
 * the suggestions.
 *
 * @example
 * ```ts
 * @Completion('plan_delivery', 'orderId')
 * orderIds(value: string) {
 *   return ['ord_1', 'ord_2'].filter((id) => id.startsWith(value));
 * }
 * ```
 */
export const Completion =
  (of: string, argument: string): MethodDecorator =>
  (target, key, descriptor?: PropertyDescriptor) => {
    refuseStandardDecorators('@Completion', key);
    const served = { kind: 'completion', of, argument } as const;
    const given = { description: `Completes ${argument} of ${of}` };
    recordServed({ target, key }, given, { served, given, method: descriptor?.value });
  };
