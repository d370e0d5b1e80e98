import { classModel } from '../../schema/class-model.js';
import type { ClassModel, ValueType } from '../../schema/value-type.js';

/** How class-validator is needed for instances of a class: not at all, if in doubt, or always. */
export type ValidationNeed = 'none' | 'doubt' | 'always';

/** Rules that the class has, or a class that `@ValidateNested` leads to. */
export function validationNeed(model: ClassModel): ValidationNeed {
  if (some(model, ({ remaining }) => remaining === 'all')) return 'always';
  return some(model, ({ remaining }) => remaining !== 'none') ? 'doubt' : 'none';
}

type Test = (model: ClassModel) => boolean;

function some(model: ClassModel, test: Test, around: ReadonlySet<ClassModel> = new Set()): boolean {
  if (test(model)) return true;
  if (around.has(model)) return false;
  const inside = new Set([...around, model]);
  return model.properties.some(
    ({ cascades, type }) => cascades === true && classesIn(type).some((one) => some(one, test, inside)),
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
