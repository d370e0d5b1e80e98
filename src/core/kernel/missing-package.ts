/** The package that Node could not find for an import. */
export function missingPackage(error: unknown): string | undefined {
  const message = error instanceof Error ? error.message : '';
  return /^Cannot find package '((?:@[\w.-]+\/)?\w[\w.-]*)/.exec(message)?.[1];
}
