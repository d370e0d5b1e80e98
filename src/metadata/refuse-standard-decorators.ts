/**
 * Under TypeScript's standard decorators a decorator gets a context object where the older ones get a key,
 * and no metadata at all: nothing could be recorded.
 *
 * @throws TypeError with the compiler options to set.
 */
export function refuseStandardDecorators(decorator: string, second: unknown): void {
  if (typeof second !== 'object' || second === null || !('kind' in second)) return;
  throw new TypeError(
    `${decorator} needs "experimentalDecorators": true and "emitDecoratorMetadata": true in tsconfig.json; this file was compiled with standard decorators.`,
  );
}
