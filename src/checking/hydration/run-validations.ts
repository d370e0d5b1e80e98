import type { ClassType } from '../../contract/class-type.js';
import type { ReviewFault } from '../../contract/tool-definition.js';
import { classModel } from '../../schema/class-model.js';
import { validateInstance } from '../../validators/validate-instance.js';
import type { Validation } from './revival.js';

/** Lets class-validator judge the instances; paths carry the names that the properties have in JSON. */
export async function runValidations(validations: readonly Validation[]): Promise<readonly ReviewFault[]> {
  const faults = await Promise.all(
    validations.map(async ({ instance, path, groups, isCertain }) => {
      const nameOf = (owner: object, key: string) => jsonName({ owner, key, groups });
      try {
        return await validateInstance(instance, { path, groups, nameOf });
      } catch (error) {
        // Where all rules are class-validator's own, it is the value that they could not bear.
        if (isCertain) throw error;
        return [{ path, message: 'has a value that its rules cannot judge', isAuthored: false }];
      }
    }),
  );
  return faults.flat();
}

interface Named {
  readonly owner: object;
  readonly key: string;
  readonly groups?: readonly string[];
}

function jsonName({ owner, key, groups }: Named): string {
  // Items and values of collections keep their index or key.
  if (Array.isArray(owner) || owner instanceof Map || owner instanceof Set) return key;
  const read = classModel(owner.constructor as ClassType, groups);
  const property = read.ok ? read.model.properties.find((one) => (one.key ?? one.name) === key) : undefined;
  return property?.name ?? key;
}
