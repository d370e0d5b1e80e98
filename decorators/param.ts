import type { ParamOptions } from '../src/core/contract/declaration.js';
import { recordParameter, recordProperty } from '../src/core/metadata/class-record.js';

/**
 * Describes a parameter of a tool method, or a property of a DTO class. State only what the types do not express: a
 * description, the items of an array, an enum, whether it is optional, and any JSON Schema constraint under its own
 * name.
 *
 * @example
 * ```ts
 * @Tool('Search the notes')
 * search(
 *   @Param('Words to look for') query: string,
 *   @Param({ description: 'Maximum number of results', type: () => Integer, minimum: 1, maximum: 50 }) limit = 10,
 *   @Param({ items: () => String, required: false }) tags?: string[],
 * ) { … }
 * ```
 */
export function Param(options: string | ParamOptions = {}): ParameterDecorator & PropertyDecorator {
  // Any other value is later reported as an invalid description.
  const recorded = typeof options === 'object' && options !== null ? options : { description: options };
  return (target: object, key: string | symbol | undefined, index?: number) => {
    if (typeof index === 'number')
      recordParameter({ target, key, index }, { role: 'property', options: recorded });
    else if (typeof key === 'string') recordProperty(target, key, recorded);
  };
}
