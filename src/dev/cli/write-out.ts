/** Writes to standard output, also after other output was redirected to standard error. */
export const writeOut = process.stdout.write.bind(process.stdout);
