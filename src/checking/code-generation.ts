let known: boolean | undefined;

/**
 * Whether this process may make code of text: not under `--disallow-code-generation-from-strings`, nor in workers and
 * pages whose policy forbids it. Where it may not, that is said once.
 */
export function mayGenerateCode(): boolean {
  known ??= findOut();
  return known;
}

function findOut(): boolean {
  try {
    return new Function('return true')() === true;
  } catch {
    const message =
      'Code must not be generated here, so that JSON schemas are interpreted: with the same verdicts, in more time for each call.';
    process.emitWarning(message, { type: 'ToolwrightWarning', code: 'TOOLWRIGHT_INTERPRETED' });
    return false;
  }
}
