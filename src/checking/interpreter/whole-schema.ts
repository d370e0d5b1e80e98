import type { JsonSchema } from '../../contract/json-schema.js';
import type { Draft } from '../../schema/keywords.js';
import { draftOf } from '../draft-of.js';
import { everySchema } from './every-schema.js';
import { judgesItselfAgain, judgesItselfRepeatedly } from './judges-itself.js';
import { withMetaSchemas } from './meta-schemas.js';

/** What all parts of a schema share. */
export interface WholeSchema {
  readonly root: JsonSchema;
  readonly draft: Draft;
  /** Some part asks what others have judged of a value. */
  readonly isTracking: boolean;
  /** What some reference means depends on who asks. */
  readonly isDynamic: boolean;
  /** What is said of a value has to be remembered, because it would be asked too often. */
  readonly isRepeating: boolean;
  /** Generated code would judge it wrongly, or take a time that doubles with each level of a value. */
  readonly isBetterInterpreted: boolean;
}

/** Looks at all parts of a schema once. */
export function wholeSchema(schema: JsonSchema): WholeSchema {
  const given = everySchema(schema);
  const draft = draftOf(schema, given);
  const root = withMetaSchemas(schema, given);
  let [isTracking, isDynamic, isReferring, isMisread] = [false, false, false, false];
  for (const part of root === schema ? given : everySchema(root)) {
    isTracking ||= (part.unevaluatedProperties ?? part.unevaluatedItems) !== undefined;
    isDynamic ||= (part.$dynamicRef ?? part.$recursiveRef) !== undefined;
    isReferring ||= part.$ref !== undefined;
    isMisread ||= isMisreadByCode(part, root);
  }
  const isRepeating = (isReferring || isDynamic) && (judgesItselfRepeatedly(root) || judgesItselfAgain(root));
  return {
    root,
    draft,
    isTracking: isTracking && draft !== '7',
    isDynamic,
    isRepeating,
    isBetterInterpreted: isMisread || isTracking || isDynamic || isRepeating,
  };
}

/**
 * Generated code asks nothing more of a list that ends within a tuple, takes an empty list after another one to
 * contain what that one did, loses its way among parts with addresses of their own, and in its fastest form counts
 * as sent what every object inherits.
 */
function isMisreadByCode(part: JsonSchema, root: JsonSchema): boolean {
  if (part.contains !== undefined) return true;
  if (part.uniqueItems === true && Array.isArray(part.prefixItems ?? part.items)) return true;
  if ((part.$anchor ?? part.$dynamicAnchor) !== undefined) return true;
  if (part.$id !== undefined && part !== root) return true;
  if (part.$ref !== undefined && !/^#(?:\/|$)/.test(part.$ref)) return true;
  for (const name in part.properties) if (name in Object.prototype) return true;
  return part.required?.some((name) => name in Object.prototype) ?? false;
}
