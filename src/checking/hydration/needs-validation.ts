import { classModel } from '../../schema/class-model.js';
import type { ClassModel, ValueType } from '../../schema/value-type.js';

/**
 * Whether class-validator has to look at instances of a class: it has rules that JSON Schema cannot say, or
 * `@ValidateNested` leads to a class that has.
 */
export function needsValidation(model: ClassModel, around: ReadonlySet<ClassModel> = new Set()): boolean {
  if (model.validate) return true;
  if (around.has(model)) return false;
  const inside = new Set([...around, model]);
  return model.properties.some(
    ({ cascades, type }) => cascades === true && classesIn(type).some((one) => needsValidation(one, inside)),
  );
}

/** What class-validator goes into by itself: classes, arrays and maps of them, but not the values of plain objects. */
function classesIn(type: ValueType): readonly ClassModel[] {
  if (type.kind === 'array') return classesIn(type.items);
  if (type.kind === 'record' && type.collection === 'map') return classesIn(type.values);
  if (type.kind === 'class') return modelsOf([type.class], type.groups);
  if (type.kind === 'tagged')
    return modelsOf(
      type.variants.map((variant) => variant.class),
      type.groups,
    );
  return [];
}

function modelsOf(
  classes: readonly ClassModel['class'][],
  groups?: readonly string[],
): readonly ClassModel[] {
  return classes.flatMap((one) => {
    const read = classModel(one, groups);
    return read.ok ? [read.model] : [];
  });
}
