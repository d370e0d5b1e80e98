/**
 * Formats that this room writes, in the width in which class-validator accepts them, for the checker to use
 * instead of narrower ones. `email`: RFC 6531 allows characters outside ASCII and RFC 5321 quoted names;
 * ajv-formats refuses both.
 */
export const TEXT_FORMATS: Readonly<Record<string, (text: string) => boolean>> = { email: isEmail };

/** Cut at its last `@`, so that it takes one look at each character, whatever the text. */
function isEmail(text: string): boolean {
  const at = text.lastIndexOf('@');
  const name = text.slice(0, Math.max(at, 0));
  const host = text.slice(at + 1);
  const dot = host.indexOf('.', 1);
  const isHost = VISIBLE.test(host) && dot > 0 && dot < host.length - 1;
  return (
    at > 0 && isHost && (NAME.test(name) || (name.length > 1 && name.startsWith('"') && name.endsWith('"')))
  );
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
const VISIBLE = /^[^\x00-\x20]+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
const NAME = /^[^\x00-\x20"@]+$/;
