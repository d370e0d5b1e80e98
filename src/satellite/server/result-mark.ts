const LONGEST_NAME = 64;

/**
 * A tool's result as the model reads it. The protocol has no role for results, so that they stand in user
 * messages; the mark says that this one is none of the user's words. `unmarked` keeps everybody else from
 * writing one, within a result too.
 */
export function markResult(name: string, content: string): string {
  const plain = name.replace(/[^a-zA-Z0-9_.-]/g, '_').slice(0, LONGEST_NAME);
  return `[tool_result:${plain}]\n${unmarked(content)}`;
}

/** Invisible characters between the letters would hide an imitation from us, and not from the model. */
const hidden = (word: string): string => [...word].join('\\p{Cf}*');

const IMITATION = new RegExp(
  `[[［【〔⟦](?=[\\s\\p{Cf}]*${hidden('tool')}[\\s\\p{Cf}_-]*${hidden('result')})`,
  'giu',
);

/** Text that holds no mark of a result: the bracket of an imitation is replaced, nothing else. */
export function unmarked(text: string): string {
  return text.replace(IMITATION, '(');
}
