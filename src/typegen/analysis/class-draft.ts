import type { CodeReference, DescribedSchema } from '../types/described-schema.js';

/** What the generated file says of one class. */
export interface ClassDraft {
  readonly reference: CodeReference;
  /** Classes that the constructor asks for; nothing at the place of what is no class. */
  readonly dependencies?: readonly (CodeReference | undefined)[];
  readonly tools?: readonly MethodDraft[];
  readonly properties?: readonly PropertyDraft[];
  readonly definitions: ReadonlyMap<string, DescribedSchema>;
}

/** A property of a DTO class. */
export interface PropertyDraft {
  readonly name: string;
  readonly schema: DescribedSchema;
  readonly optional: boolean;
}

/** A tool method. */
export interface MethodDraft {
  readonly name: string;
  readonly description?: string;
  readonly parameters: readonly ParameterDraft[];
  readonly output?: DescribedSchema;
  readonly definitions: ReadonlyMap<string, DescribedSchema>;
}

/** One parameter of a tool method. */
export interface ParameterDraft {
  /** Nothing where it is destructured. */
  readonly name?: string;
  readonly inject?: 'context' | 'signal';
  readonly optional: boolean;
  readonly rest: boolean;
  readonly schema?: DescribedSchema;
}

/** Something to tell the author, and where. */
export interface Finding {
  /** Absolute. */
  readonly file: string;
  readonly line: number;
  /** `OrderTools.findOrders, parameter page`. */
  readonly where: string;
  /** Within the type: `page.filters[]`. */
  readonly path?: string;
  readonly problem: string;
  readonly fix: string;
}
